internal import DesktopBus
internal import StrictJSON

// The encoding of the Secret Service's results between helper and daemon, the same for both directions.

extension SecretServiceStatus {
    var members: JSONObject {
        switch self {
        case .unavailable(let reason):
            JSONObject([.init("status", "unavailable"), .init("reason", .string(reason))])
        case .locked: JSONObject([.init("status", "locked")])
        case .unlocked: JSONObject([.init("status", "unlocked")])
        }
    }

    init?(members: JSONObject) {
        switch members["status"]?.string {
        case "unavailable": self = .unavailable(reason: members["reason"]?.string ?? "")
        case "locked": self = .locked
        case "unlocked": self = .unlocked
        default: return nil
        }
    }
}

extension SecretServiceError {
    var members: JSONObject {
        switch self {
        case .unavailable(let reason): JSONObject([.init("error", "unavailable"), .init("reason", .string(reason))])
        case .locked: JSONObject([.init("error", "locked")])
        case .notFound: JSONObject([.init("error", "not_found")])
        case .dismissed: JSONObject([.init("error", "dismissed")])
        case .failed(let reason): JSONObject([.init("error", "failed"), .init("reason", .string(reason))])
        }
    }

    init?(members: JSONObject) {
        let reason = members["reason"]?.string ?? ""
        switch members["error"]?.string {
        case "unavailable": self = .unavailable(reason: reason)
        case "locked": self = .locked
        case "not_found": self = .notFound
        case "dismissed": self = .dismissed
        case "failed": self = .failed(reason: reason)
        default: return nil
        }
    }
}
