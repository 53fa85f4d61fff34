"""A server of two services that are not Weighbridge's, by grpcio. Prints its port, and when it ends what it counted."""
import json, os, signal, sys, threading, time
from concurrent import futures
import grpc
from grpc_reflection.v1alpha import reflection
import greeter_pb2, greeter_pb2_grpc, lab_pb2, lab_pb2_grpc

counts = {"hello": 0, "lots": 0, "chat": 0, "calls": 0, "unique": set(), "wrong": 0, "metadata": set()}
lock = threading.Lock()


def count(name, by=1):
    with lock:
        counts[name] += by


class Greeter(greeter_pb2_grpc.GreeterServicer):
    def SayHello(self, request, context):
        count("hello")
        with lock:
            for key, value in context.invocation_metadata():
                if key in ("x-site", "x-token", "x-raw-bin"):
                    counts["metadata"].add(f"{key}={value if isinstance(value, str) else value.hex()}")
        return greeter_pb2.HelloReply(message="Hello, " + request.name)

    def SayHelloLots(self, requests, context):
        names = [request.name for request in requests]
        count("lots", len(names))
        return greeter_pb2.HelloReply(message=str(len(names)))

    def LotsOfReplies(self, request, context):
        count("hello")
        for place in range(5):
            yield greeter_pb2.HelloReply(message=f"{place}: {request.name}")

    def Chat(self, requests, context):
        count("calls")
        for request in requests:
            count("chat")
            yield greeter_pb2.HelloReply(message=request.name)


class Lab(lab_pb2_grpc.LabServicer):
    def Record(self, sample, context):
        near = sample.site.near
        is_right = (
            sample.kind == lab_pb2.WATER and list(sample.values) == [1, -2, 3] and dict(sample.tags) == {"ec": -0.5, "ph": 6.1}
            and sample.raw.count(b"WB1.") == 1 and sample.site.name == f"site {sample.client}/{sample.number}"
            and len(near) == 1 and near[0].near[0].name == "inner" and sample.at.seconds == 1 and sample.delta == -7
            and sample.serial == sample.number and sample.ratio == float(sample.client) and sample.is_new
        )
        if not is_right:
            count("wrong")
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not as it should be: {sample}"[:200])
        with lock:
            counts["unique"].add((sample.client, sample.number))
        return lab_pb2.Receipt(count=len(counts["unique"]))

    def Fail(self, sample, context):
        count("calls")
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no more room 100 %")

    def Slow(self, sample, context):
        count("calls")
        time.sleep(0.2)
        return lab_pb2.Receipt()


server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
greeter_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)
lab_pb2_grpc.add_LabServicer_to_server(Lab(), server)
if "--reflection" in sys.argv:
    names = [pb.DESCRIPTOR.services_by_name[name].full_name for pb, name in ((greeter_pb2, "Greeter"), (lab_pb2, "Lab"))]
    reflection.enable_server_reflection(names + [reflection.SERVICE_NAME], server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
over = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: over.set())
print(port, flush=True)
over.wait()
server.stop(None)
counts["unique"], counts["metadata"] = len(counts["unique"]), sorted(counts["metadata"])
print(json.dumps(counts), flush=True)
os._exit(0)
