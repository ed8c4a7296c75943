//! The changes that a client subscribes to.

use super::spelling::is_false;

model! {
    /// The changes that a client wants, or those that a server agrees to report.
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
        /// The changes to report.
        pub notifications: SubscriptionFilter,
    }

    /// The parameters of `notifications/subscriptions/acknowledged`.
    #[derive(Default, Eq)]
    pub struct AcknowledgedParams {
        /// The changes that will be reported: a subset of those requested.
        pub notifications: SubscriptionFilter,
    }
}

impl SubscriptionFilter {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it names no changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

setters! { SubscriptionFilter = SubscriptionFilter::new();
    /// Includes changes of the list of tools.
    tools_list_changed(bool) = true => r#"{"toolsListChanged":true}"#;
    /// Includes changes of the list of prompts.
    prompts_list_changed(bool) = true => r#"{"promptsListChanged":true}"#;
    /// Includes changes of the list of resources.
    resources_list_changed(bool) = true => r#"{"resourcesListChanged":true}"#;
    /// Includes these resources.
    resource_subscriptions(Vec<String>) = ["file:///a.md".to_owned()]
        => r#"{"resourceSubscriptions":["file:///a.md"]}"#;
    /// Includes these tasks.
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
