//! Context windows of models, with those of the settings.

use sightline_conversation::ContextWindow;
use sightline_conversation::model_info::bare_id;
use sightline_protocol::{
    environment::{ModelInfo, ModelRef},
    settings::{ConversationSettings, ModelSettings},
};

/// Returns the model with its configured context window, unless the request specifies
/// one.
pub fn model(settings: &ConversationSettings, model: &ModelRef) -> ModelRef {
    let set = settings_of(settings, model);
    let window = set.and_then(|set| set.context_window);
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
pub fn context_window(settings: &ConversationSettings, of: &ModelRef) -> ContextWindow {
    let mut window = ContextWindow::for_model(&model(settings, of));
    let usable = settings_of(settings, of).and_then(|set| set.usable_tokens);
    if let Some(usable) = usable {
        window.usable = (usable as f64).min(window.size);
    }
    window
}

/// Returns the settings of a model: by exact id, else by id without router prefix and
/// case.
fn settings_of<'a>(
    settings: &'a ConversationSettings,
    model: &ModelRef,
) -> Option<&'a ModelSettings> {
    let models = &settings.models;
    let wanted = bare_id(model.id());
    models.get(model.id()).or_else(|| {
        let mut all = models.iter();
        all.find(|(id, _)| bare_id(id) == wanted)
            .map(|(_, set)| set)
    })
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
        let window = |model: ModelRef| context_window(&settings.conversation, &model);
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
        let set = context_window(&settings.conversation, &id("gpt-4.1"));
        assert_eq!(set, ContextWindow::with_size(64_000.0));
        for empty in [json!([]), json!({})] {
            let set = json!({ "conversation": { "models": empty } });
            let (_, problems) = SettingsSources::default().update(Source::Configuration, &set);
            assert_eq!(problems, []);
        }
    }
}
