//! Conversation settings.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use sightline_conversation::{ContextWindow, Notices};
use sightline_protocol::{
    environment::{ModelInfo, ModelRef},
    settings as wire,
};
use sightline_workspace::model_info::bare_id;

use super::{Reader, format_value};

/// Settings for truncating conversations.
#[derive(Clone, Debug, Default)]
pub struct ConversationSettings {
    /// Compatibility profile.
    pub profile: wire::ConversationProfile,
    /// Texts that replace removed content.
    pub notices: Notices,
    models: BTreeMap<String, wire::ModelSettings>,
}

impl ConversationSettings {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let notices = wire::NoticeSettings {
            duplicate_file_read: reader.read("conversation.notices.duplicateFileRead"),
            truncation: reader.read("conversation.notices.truncation"),
            missing_tool_result: reader.read("conversation.notices.missingToolResult"),
        };
        Self {
            profile: reader.read("conversation.profile").unwrap_or_default(),
            notices: Notices::from(notices),
            models: models(reader),
        }
    }

    /// Returns the model with its configured context window, unless the request specifies
    /// one.
    pub fn model(&self, model: &ModelRef) -> ModelRef {
        let window = self.set_for(model).and_then(|set| set.context_window);
        let mut info = match model {
            ModelRef::Id(id) => ModelInfo {
                id: id.clone(),
                context_window: None,
                provider: None,
            },
            ModelRef::Info(info) => info.clone(),
        };
        info.context_window = info.context_window.or(window.map(|tokens| tokens as f64));
        ModelRef::Info(info)
    }

    /// Returns the context window of a model and its usable part.
    pub fn window(&self, model: &ModelRef) -> ContextWindow {
        let mut window = ContextWindow::for_model(&self.model(model));
        let usable = self.set_for(model).and_then(|set| set.usable_tokens);
        if let Some(usable) = usable {
            window.usable = (usable as f64).min(window.size);
        }
        window
    }

    /// Returns the settings of a model: by exact id, else by id without router prefix and
    /// case.
    fn set_for(&self, model: &ModelRef) -> Option<&wire::ModelSettings> {
        let bare = || {
            let wanted = bare_id(model.id());
            let mut all = self.models.iter();
            all.find(|(id, _)| bare_id(id) == wanted)
                .map(|(_, set)| set)
        };
        self.models.get(model.id()).or_else(bare)
    }
}

/// Reads each model separately, so that an invalid one does not affect the others.
fn models(reader: &mut Reader<'_>) -> BTreeMap<String, wire::ModelSettings> {
    const PATH: &str = "conversation.models";
    let Some(value) = reader.at(PATH).cloned() else {
        return BTreeMap::new();
    };
    let Value::Object(models) = value else {
        reader.problem(
            PATH,
            format!("must be an object (is {})", format_value(&value)),
        );
        return BTreeMap::new();
    };
    let mut known = BTreeMap::new();
    for (id, model) in models {
        match wire::ModelSettings::deserialize(&model) {
            Ok(settings) => {
                known.insert(id, settings);
            }
            Err(error) => {
                let message = format!("{error} (is {})", format_value(&model));
                reader.problem(&format!("{PATH}.{id}"), message);
            }
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::sources::{SettingsSources, Source};

    #[test]
    fn windows_are_set_by_model() {
        let set = json!({ "conversation.models": { "gpt-4.1": { "contextWindow": 64_000 },
            "mine": { "usableTokens": 60_000 } } });
        let (settings, problems) = SettingsSources::default().update(Source::Configuration, &set);
        assert_eq!(problems, []);
        let window = |model: ModelRef| settings.conversation.window(&model);
        let id = |id: &str| ModelRef::Id(id.to_owned());
        assert_eq!(window(id("gpt-4.1")), ContextWindow::with_size(64_000.0));
        assert_eq!(window(id("gpt-4o")), ContextWindow::with_size(128_000.0));
        assert_eq!(window(id("mine")).usable, 60_000.0);
        // The request's own window takes precedence.
        let named = ModelInfo {
            id: "gpt-4.1".to_owned(),
            context_window: Some(200_000.0),
            provider: None,
        };
        assert_eq!(
            window(ModelRef::Info(named)),
            ContextWindow::with_size(200_000.0)
        );
        assert_eq!(
            window(id("openai/GPT-4.1")),
            ContextWindow::with_size(64_000.0)
        );
        // An invalid model does not affect the others, in any spelling.
        let set = json!({
            "sightline.conversation.models.gpt-4.1": { "contextWindow": 64_000 },
            "sightline.conversation.models.bad": { "contextWindow": "much" },
        });
        let (settings, problems) = SettingsSources::default().update(Source::Configuration, &set);
        assert_eq!(problems[0].path, "conversation.models.bad", "{problems:?}");
        let set = settings.conversation.window(&id("gpt-4.1"));
        assert_eq!(set, ContextWindow::with_size(64_000.0));
        for empty in [json!([]), json!({})] {
            let set = json!({ "conversation": { "models": empty } });
            let (_, problems) = SettingsSources::default().update(Source::Configuration, &set);
            assert_eq!(problems, []);
        }
    }
}
