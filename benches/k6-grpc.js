// k6: unary calls with 64 bytes by as many users as there are calls in flight; CONNECTIONS, SECONDS, ADDRESS, PROTOS and
// READING (base64) are given. Every user has a connection of its own.
import grpc from 'k6/net/grpc';
const client = new grpc.Client();
client.load([__ENV.PROTOS], 'store.proto');
export const options = { vus: Number(__ENV.CONNECTIONS), duration: `${__ENV.SECONDS}s` };
let isConnected = false;
export default function () {
    if (!isConnected) { client.connect(__ENV.ADDRESS, { plaintext: true }); isConnected = true; }
    client.invoke('weigh.store.v1.Store/Append', { reading: __ENV.READING });
}
