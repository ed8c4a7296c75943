//! What a client wants to hear about.

use super::spelling::is_false;

model! {
    /// The changes a listener wants, or those that a server agrees to tell.
    #[derive(Default, Eq)]
    #[serde(default)]
    pub struct SubscriptionFilter {
        /// The list of tools.
        #[serde(skip_serializing_if = "is_false")]
        pub tools_list_changed: bool,
        /// The list of prompts.
        #[serde(skip_serializing_if = "is_false")]
        pub prompts_list_changed: bool,
        /// The list of resources.
        #[serde(skip_serializing_if = "is_false")]
        pub resources_list_changed: bool,
        /// These resources, by URI.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub resource_subscriptions: Vec<String>,
        /// These tasks (the tasks extension).
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub task_ids: Vec<String>,
    }

    /// The parameters of `subscriptions/listen`.
    #[derive(Default, Eq)]
    pub struct ListenParams {
        /// What to tell.
        pub notifications: SubscriptionFilter,
    }

    /// The parameters of `notifications/subscriptions/acknowledged`.
    #[derive(Default, Eq)]
    pub struct AcknowledgedParams {
        /// What will be told: a subset of what was asked for.
        pub notifications: SubscriptionFilter,
    }
}

impl SubscriptionFilter {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

setters! { SubscriptionFilter = SubscriptionFilter::new();
    /// Hear about the list of tools.
    tools_list_changed(bool) = true => r#"{"toolsListChanged":true}"#;
    /// Hear about the list of prompts.
    prompts_list_changed(bool) = true => r#"{"promptsListChanged":true}"#;
    /// Hear about the list of resources.
    resources_list_changed(bool) = true => r#"{"resourcesListChanged":true}"#;
    /// Hear about these resources.
    resource_subscriptions(Vec<String>) = ["file:///a.md".to_owned()]
        => r#"{"resourceSubscriptions":["file:///a.md"]}"#;
    /// Hear about these tasks.
    task_ids(Vec<String>) = ["t-1".to_owned()] => r#"{"taskIds":["t-1"]}"#;
}

impl ListenParams {
    /// Asks for `notifications`.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications }
    }
}

impl AcknowledgedParams {
    /// Agrees to `notifications`.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications }
    }
}
