//! The schemas that editors and readers of results are given are those of the code.

use std::path::Path;

#[test]
fn the_schemas_in_the_repository_are_current() {
    for (file, made) in [
        ("study.schema.json", weigh_study::study_schema()),
        ("outcome.schema.json", weigh_study::Outcome::json_schema()),
        ("tools.schema.json", weigh_study::tools_schema()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas").join(file);
        if std::env::var_os("WEIGH_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == made, "schemas/{file} is not what the code says: WEIGH_WRITE_SCHEMAS=1");
    }
}
