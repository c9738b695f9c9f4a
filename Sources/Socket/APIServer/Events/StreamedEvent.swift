internal import BrokerCore
internal import StrictJSON

/// The events of one stream, by their names. What an event's data has is stated once: the OpenAPI document describes
/// the event by it, and the stream sends what it names and nothing else.
protocol StreamedEvent: RawRepresentable<String>, CaseIterable, Sendable {
    /// What the names of the components of these events begin with, so that two streams may have an event of one name.
    static var prefix: String { get }
    var data: [Member] { get }
    /// False for events that no client can come back to.
    var mayHaveID: Bool { get }
}

extension StreamedEvent {
    /// How the OpenAPI document describes the event: its fields, with its data as JSON.
    var component: Component {
        let words = rawValue.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }
        return Component(
            "\(Self.prefix)\(words.joined())Event",
            [.required("event", .words([rawValue]))] + (mayHaveID ? [.optional("id", .string)] : [])
                + [.required("data", .object(data))])
    }

    /// The event's bytes (WHATWG HTML section 9.2).
    func bytes(id: String? = nil, _ values: JSON) -> [UInt8] {
        var object = JSONObject()
        for member in data { object[member.name] = values[member.name] }
        var text = Array("event: \(rawValue)\n".utf8)
        if let id { text += Array("id: \(id)\n".utf8) }
        text += Array("data: ".utf8)
        JSON.object(object).write(to: &text)
        return text + Array("\n\n".utf8)
    }
}

extension Component {
    /// One event of a stream.
    static func event(_ name: String, _ kinds: [any StreamedEvent]) -> Component {
        Component(name, .either(kinds.map(\.component)))
    }
}

extension BrokerEvent.Kind: StreamedEvent {
    static let prefix = ""
    var mayHaveID: Bool { true }

    var data: [Member] {
        let account: [Member] = [.required("account", .string), .required("state", .oneOf(AccountState.self))]
        let subject = Member.optional("subject", .string)
        let session: [Member] = [subject, .optional("user", .anyObject), .optional("expires_at", .integer)]
        let problem = Schema.component(.problem)
        let members: [Member] =
            switch self {
            case .initialSession: account + session + [.optional("error", problem)]
            case .signedIn, .tokenRefreshed, .userUpdated, .passwordRecovery, .mfaChallengeVerified: account + session
            case .sessionEnding: account + session + [.required("ends_at", .integer)]
            case .signedOut: account + [subject, .optional("error", problem)]
            case .signInFailed, .callbackRefused, .refreshFailed: account + session + [.required("error", problem)]
            case .deepLink, .listenerReplaced: [.required("scheme", .string)]
            case .databaseAway: [.required("reason", .string)]
            case .databaseReturned: [.required("seconds", .integer)]
            }
        return members + [.required("at", .integer)]
    }
}

/// The last event of a stream that the daemon ends.
enum StreamEnd: String, StreamedEvent {
    case dropped

    static let prefix = ""
    var mayHaveID: Bool { false }
    var data: [Member] { [.required("reason", .string)] }
}

/// The events about the links of one scheme.
enum SchemeEvent: String, StreamedEvent {
    case deepLink = "deep_link"
    case listenerReplaced = "listener_replaced"
    case dropped

    static let prefix = "Scheme"
    var mayHaveID: Bool { self == .deepLink }

    var data: [Member] {
        switch self {
        case .deepLink:
            [
                .required("id", .string), .required("scheme", .string), .required("url", .string),
                .required("at", .integer),
            ]
        case .listenerReplaced: [.required("scheme", .string), .required("at", .integer)]
        case .dropped: StreamEnd.dropped.data
        }
    }
}

/// The steps of sign-ins and refreshes that telemetry tells.
enum TelemetryEvent: String, StreamedEvent {
    case authMethodSelected = "auth_method_selected"
    case authStarted = "auth_started"
    case authCompleted = "auth_completed"
    case authCancelled = "auth_cancelled"
    case authFailed = "auth_failed"
    case tokenRefreshAttempted = "token_refresh_attempted"
    case tokenRefreshFailed = "token_refresh_failed"
    case accountLinked = "account_linked"

    static let prefix = "Telemetry"
    var mayHaveID: Bool { false }

    var data: [Member] {
        let method = Member.required("method", .string)
        let duration = Member.required("duration_ms", .integer)
        let members: [Member] =
            switch self {
            case .authMethodSelected, .authStarted, .accountLinked: [method]
            case .authCompleted: [method, duration]
            case .authCancelled, .authFailed: [method, duration, .optional("error_type", .string)]
            case .tokenRefreshAttempted: [.required("reason", .oneOf(RefreshReason.self))]
            case .tokenRefreshFailed: [.required("error_type", .string)]
            }
        return [.required("event", .words([rawValue])), .required("account", .string)] + members
            + [.required("at", .integer)]
    }
}
