//! Settings of conversations.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use sightline_core::{
    conversation::{Notices, Window},
    model::bare_id,
};
use sightline_protocol::{
    environment::{ModelInfo, ModelRef},
    settings as wire,
};

use super::{Reader, shown};

/// Conversations: what is decided, and with which words.
#[derive(Clone, Debug, Default)]
pub struct ConversationSettings {
    /// Whose decisions.
    pub profile: wire::ConversationProfile,
    /// The texts put in place of what is taken out.
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

    /// The model with the window that was set for it, unless the request said one.
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

    /// The window of a model, and how much of it may be used.
    pub fn window(&self, model: &ModelRef) -> Window {
        let mut window = Window::of_model(&self.model(model));
        let usable = self.set_for(model).and_then(|set| set.usable_tokens);
        if let Some(usable) = usable {
            window.usable = (usable as f64).min(window.size);
        }
        window
    }

    /// What is set for a model: by its id, else by its id without the names of
    /// routers in front and whatever its case.
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

/// Each model by itself: one that is wrong leaves the others alone.
fn models(reader: &mut Reader<'_>) -> BTreeMap<String, wire::ModelSettings> {
    const PATH: &str = "conversation.models";
    let Some(value) = reader.at(PATH).cloned() else {
        return BTreeMap::new();
    };
    let Value::Object(models) = value else {
        reader.problem(PATH, format!("must be an object (is {})", shown(&value)));
        return BTreeMap::new();
    };
    let mut known = BTreeMap::new();
    for (id, model) in models {
        match wire::ModelSettings::deserialize(&model) {
            Ok(settings) => {
                known.insert(id, settings);
            }
            Err(error) => {
                let message = format!("{error} (is {})", shown(&model));
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
    use crate::settings::{SettingsSources, Source};

    #[test]
    fn windows_are_set_by_model() {
        let set = json!({ "conversation.models": { "gpt-4.1": { "contextWindow": 64_000 },
            "mine": { "usableTokens": 60_000 } } });
        let (settings, problems) = SettingsSources::default().update(Source::Configuration, &set);
        assert_eq!(problems, []);
        let window = |model: ModelRef| settings.conversation.window(&model);
        let id = |id: &str| ModelRef::Id(id.to_owned());
        assert_eq!(window(id("gpt-4.1")), Window::of(64_000.0));
        assert_eq!(window(id("gpt-4o")), Window::of(128_000.0));
        assert_eq!(window(id("mine")).usable, 60_000.0);
        // What a request says comes first.
        let named = ModelInfo {
            id: "gpt-4.1".to_owned(),
            context_window: Some(200_000.0),
            provider: None,
        };
        assert_eq!(window(ModelRef::Info(named)), Window::of(200_000.0));
        assert_eq!(window(id("openai/GPT-4.1")), Window::of(64_000.0));
        // One that is wrong leaves the others alone, whatever the spelling.
        let set = json!({
            "sightline.conversation.models.gpt-4.1": { "contextWindow": 64_000 },
            "sightline.conversation.models.bad": { "contextWindow": "much" },
        });
        let (settings, problems) = SettingsSources::default().update(Source::Configuration, &set);
        assert_eq!(problems[0].path, "conversation.models.bad", "{problems:?}");
        let set = settings.conversation.window(&id("gpt-4.1"));
        assert_eq!(set, Window::of(64_000.0));
        for empty in [json!([]), json!({})] {
            let set = json!({ "conversation": { "models": empty } });
            let (_, problems) = SettingsSources::default().update(Source::Configuration, &set);
            assert_eq!(problems, []);
        }
    }
}
