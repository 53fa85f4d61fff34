//! Compiles the method of a lane.

use std::path::Path;

use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};
use weigh_model::protocol::Invalid;
use weigh_protocols::grpc::method::{
    CompiledMethod, IMPORT_PATHS, MESSAGE, METHOD, PROTO, Streaming,
};

use super::instead::instead;
use super::{definitions, message, reflection};
use crate::case::lanes::Lane;
use crate::input_file::{self, TEXT_BYTES_MAX};

/// Writes the compiled method into the lane's settings.
///
/// # Errors
/// The file, the line, and what to type.
pub(super) fn compile(lane: &mut Lane) -> Result<(), Invalid> {
    let written = lane.settings.text(METHOD.key);
    let name = MethodName::read(written)?;
    let files = words(lane.settings.text(PROTO.key));
    let pool = match files.is_empty() {
        true => reflection::definitions(lane, &name.service)?,
        false => definitions::of_files(&files, &words(lane.settings.text(IMPORT_PATHS.key)))?,
    };
    let method = find(&pool, &name)?;
    let text = message_text(lane.settings.text(MESSAGE.key))?;
    let (template, has_text_body) = message::compile(&method.input(), &text.json, &text.place)?;
    let compiled = CompiledMethod {
        name: format!("{}/{}", name.service, name.method),
        streaming: Streaming::of(method.is_client_streaming(), method.is_server_streaming()),
        message: template,
        has_text_body,
    };
    compiled.enter(&mut lane.settings);
    Ok(())
}

/// A method as the user names it.
struct MethodName {
    service: String,
    method: String,
}

impl MethodName {
    /// Reads `package.Service/Method`, also with a slash in front or a dot before the method.
    fn read(text: &str) -> Result<MethodName, Invalid> {
        let bare = text.trim().trim_start_matches('/');
        let parts = bare.rsplit_once('/').or_else(|| bare.rsplit_once('.'));
        let is_name = |part: &str| {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
            !part.is_empty() && part.bytes().all(is_word)
        };
        match parts {
            Some((service, method)) if is_name(service) && is_name(method) => {
                Ok(MethodName { service: service.to_owned(), method: method.to_owned() })
            }
            _ => {
                let problem = format!("{text:?} is not the name of a method");
                let fix = "type package.Service/Method, such as helloworld.Greeter/SayHello";
                Err(Invalid::new("grpc.method", problem, fix))
            }
        }
    }
}

/// Finds the method.
fn find(pool: &DescriptorPool, name: &MethodName) -> Result<MethodDescriptor, Invalid> {
    let Some(service) = pool.get_service_by_name(&name.service) else {
        let names: Vec<String> = pool.services().map(|own| own.full_name().to_owned()).collect();
        let problem = format!("there is no service {}", name.service);
        return Err(Invalid::new("grpc.method", problem, instead("service", &name.service, names)));
    };
    let mut methods = service.methods();
    methods.find(|method| method.name() == name.method).ok_or_else(|| {
        let problem = format!("{} has no method {}", name.service, name.method);
        let wanted = format!("{}/{}", name.service, name.method);
        Invalid::new("grpc.method", problem, instead("method", &wanted, method_names(&service)))
    })
}

fn method_names(service: &ServiceDescriptor) -> Vec<String> {
    let name = |method: MethodDescriptor| format!("{}/{}", service.full_name(), method.name());
    service.methods().map(name).collect()
}

/// The message in JSON, and the place of it that errors name.
struct MessageText {
    json: String,
    place: String,
}

fn message_text(written: &str) -> Result<MessageText, Invalid> {
    let key = "grpc.message";
    match written.strip_prefix('@') {
        None if written.trim().is_empty() => {
            Ok(MessageText { json: "{}".to_owned(), place: key.to_owned() })
        }
        None => Ok(MessageText { json: written.to_owned(), place: key.to_owned() }),
        Some(file) => {
            let json = input_file::text(Path::new(file), TEXT_BYTES_MAX).map_err(|error| {
                let problem = format!("{file} cannot be read: {error}");
                Invalid::new(key, problem, "name a file with the message in JSON: @FILE")
            })?;
            Ok(MessageText { json, place: file.to_owned() })
        }
    }
}

fn words(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weigh_model::trial::Settings;

    use super::*;
    use crate::case::lanes::Against;

    const PROTO_TEXT: &str = r#"
        syntax = "proto3";
        package helloworld;
        import "part.proto";
        service Greeter {
            rpc SayHello(HelloRequest) returns (HelloReply);
            rpc Chat(stream HelloRequest) returns (stream HelloReply);
        }
        message HelloRequest { string name = 1; parts.Part part = 2; }
        message HelloReply { string message = 1; }
    "#;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            let folder = Folder(tempfile::tempdir().unwrap());
            folder.write("greeter.proto", PROTO_TEXT);
            let part = "syntax = \"proto3\"; package parts; message Part { int32 n = 1; }";
            folder.write("part.proto", part);
            folder
        }

        fn write(&self, name: &str, text: &str) -> String {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        }

        fn compile(&self, given: &[(&str, &str)]) -> Result<Settings, String> {
            let protocol = weigh_protocols::find("grpc").unwrap();
            let proto = self.0.path().join("greeter.proto").display().to_string();
            let mut all = BTreeMap::from([("proto".to_owned(), proto)]);
            all.extend(given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
            let mut lane = Lane::new(protocol, Against::Reference, all).unwrap();
            compile(&mut lane).map_err(|wrong| wrong.to_string())?;
            Ok(lane.settings)
        }
    }

    #[test]
    fn a_method_is_compiled_with_its_imports() {
        let folder = Folder::new();
        let message = r#"{"name": "n{seq}", "part": {"n": 7}}"#;
        for name in ["helloworld.Greeter/SayHello", "/helloworld.Greeter.SayHello"] {
            let settings = folder.compile(&[("method", name), ("message", message)]).unwrap();
            let compiled = CompiledMethod::of(&settings).unwrap().unwrap();
            assert_eq!(compiled.name, "helloworld.Greeter/SayHello");
            assert_eq!(compiled.streaming, Streaming::None);
        }
        let settings = folder.compile(&[("method", "helloworld.Greeter/Chat")]).unwrap();
        let compiled = CompiledMethod::of(&settings).unwrap().unwrap();
        assert_eq!(compiled.streaming, Streaming::Bidi);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_a_fix() {
        let folder = Folder::new();
        let said = |given: &[(&str, &str)]| folder.compile(given).unwrap_err();
        let hello = ("method", "helloworld.Greeter/SayHello");
        let near = said(&[("method", "helloworld.Greeter/SayHelo")]);
        assert!(near.contains("did you mean helloworld.Greeter/SayHello?"), "{near}");
        let none = said(&[("method", "x.Y/Z")]);
        assert!(none.contains("no service x.Y") && none.contains("helloworld.Greeter"), "{none}");
        assert!(said(&[("method", "SayHello")]).contains("package.Service/Method"));
        let missing = said(&[hello, ("proto", "/no/such.proto")]);
        assert!(missing.contains("grpc.proto") && missing.contains("/no/such.proto"), "{missing}");
        let broken = folder.write("broken.proto", "syntax = \"proto3\";\nmessage {");
        let broken = said(&[hello, ("proto", &broken)]);
        assert!(broken.contains("broken.proto:2:9"), "{broken}");
        let import = folder.write("import.proto", "syntax = \"proto3\";\nimport \"gone.proto\";");
        let import = said(&[hello, ("proto", &import)]);
        assert!(import.contains("gone.proto") && import.contains("--import-path"), "{import}");
        let file = folder.write("message.json", "{\n  \"name\": \"a\",\n  \"prat\": {}\n}");
        let field = said(&[hello, ("message", &format!("@{file}"))]);
        assert!(field.contains("message.json:3") && field.contains("part"), "{field}");
        let gone = said(&[hello, ("message", "@/no/such.json")]);
        assert!(gone.contains("/no/such.json"), "{gone}");
    }
}
