//! The client library of the bus at Weighbridge's own NATS server: what it publishes arrives, its
//! requests are answered, and JetStream confirms, finds duplicates, and delivers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, consumer, stream};
use futures_util::StreamExt;
use weigh_engine::serving::Serving;
use weigh_protocols::nats::Nats;

#[test]
fn async_nats_is_served_and_every_message_is_counted() {
    let protocol: &dyn weigh_model::Protocol = &Nats;
    let host = protocol.host(&weigh_model::trial::Settings::default()).unwrap();
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = Serving::start(&host, any_port, 1).unwrap();
    let url = format!("nats://{}", serving.address());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let within = Duration::from_secs(30);
        tokio::time::timeout(within, use_everything(&url)).await.expect("nothing hangs");
    });
    let report = serving.stop().server;
    // 100 core messages, two requests, and 52 for the stream.
    assert_eq!((report.received, report.disconnects), (154, 0), "{report:?}");
    // The core messages, one request, and 50 by each consumer: the one asks for no more, the other
    // for one subject.
    assert_eq!(report.forwarded, 201, "{report:?}");
}

async fn use_everything(url: &str) {
    let client = async_nats::connect(url).await.unwrap();
    let mut farm = client.subscribe("farm.*").await.unwrap();
    for number in 0..100 {
        client.publish(format!("farm.{number}"), format!("{number}").into()).await.unwrap();
    }
    for number in 0..100 {
        assert_eq!(farm.next().await.unwrap().payload, number.to_string());
    }
    let mut asked = client.subscribe("ask").await.unwrap();
    let answered = async {
        let request = asked.next().await.unwrap();
        client.publish(request.reply.unwrap(), "pong".into()).await.unwrap();
    };
    let asking = client.request("ask", "ping".into());
    let (answer, ()) = futures_util::future::join(asking, answered).await;
    assert_eq!(answer.unwrap().payload, "pong");
    let nobody = client.request("other", "ping".into()).await.unwrap_err();
    assert_eq!(nobody.kind(), async_nats::RequestErrorKind::NoResponders);

    let context = jetstream::new(client);
    let config = stream::Config {
        name: "kept".to_owned(),
        subjects: vec!["kept.*".to_owned()],
        storage: stream::StorageType::Memory,
        ..stream::Config::default()
    };
    let stream = context.create_stream(config).await.unwrap();
    for number in 0..50 {
        let confirmed = context.publish("kept.a", format!("{number}").into()).await.unwrap();
        assert_eq!(confirmed.await.unwrap().sequence, number + 1);
    }
    for is_again in [false, true] {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", "49");
        let sent = context.publish_with_headers("kept.b", headers, "x".into()).await.unwrap();
        assert_eq!(sent.await.unwrap().duplicate, is_again);
    }

    let pull = consumer::pull::Config { durable_name: Some("pull".to_owned()), ..<_>::default() };
    let pull = stream.create_consumer(pull).await.unwrap();
    let mut messages = pull.fetch().max_messages(50).messages().await.unwrap();
    let mut number = 0;
    while let Some(message) = messages.next().await {
        let message = message.unwrap();
        assert_eq!(message.payload, number.to_string());
        message.double_ack().await.unwrap();
        number += 1;
    }
    assert_eq!(number, 50);
    let push = consumer::push::Config {
        durable_name: Some("push".to_owned()),
        deliver_subject: "deliver.here".to_owned(),
        filter_subject: "kept.a".to_owned(),
        ..<_>::default()
    };
    let push = stream.create_consumer(push).await.unwrap();
    let mut messages = push.messages().await.unwrap();
    for number in 0..50 {
        let message = messages.next().await.unwrap().unwrap();
        assert_eq!(message.payload, number.to_string());
        message.ack().await.unwrap();
    }
}
