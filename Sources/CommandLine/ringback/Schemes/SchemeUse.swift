import HTTPMessages
import SchemeRegistration
import StrictJSON

/// A scheme that is in use: an account's redirect URI has it, the configuration has a table for it, or it was
/// registered.
struct SchemeUse {
    let scheme: URLScheme
    var accounts: [String] = []
    /// It has a table of its own in the configuration.
    var isConfigured = false
    /// What was registered for it.
    var file: HandlerFile?

    /// True if the daemon takes its links.
    var isUsed: Bool { isConfigured || !accounts.isEmpty }
}

extension SchemeUse {
    /// The schemes of a configuration's report and those that were registered, by name.
    static func all(_ report: JSON?, _ registered: [HandlerFile]) -> [SchemeUse] {
        var uses: [URLScheme: SchemeUse] = [:]
        for account in report?["accounts"]?.array ?? [] {
            let redirect = account["redirect_uri"]?.string ?? ""
            guard let name = account["name"]?.string,
                let scheme = try? URLScheme(parsing: String(redirect.prefix { $0 != ":" }))
            else { continue }
            uses[scheme, default: SchemeUse(scheme: scheme)].accounts.append(name)
        }
        for entry in report?["schemes"]?.array ?? [] {
            guard let scheme = entry["name"]?.string.flatMap({ try? URLScheme(parsing: $0) }) else { continue }
            uses[scheme, default: SchemeUse(scheme: scheme)].isConfigured = true
        }
        for file in registered { uses[file.scheme, default: SchemeUse(scheme: file.scheme)].file = file }
        return uses.values.sorted { $0.scheme < $1.scheme }
    }
}
