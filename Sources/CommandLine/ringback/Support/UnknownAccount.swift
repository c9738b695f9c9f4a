import RingbackClient
import StrictJSON
import Terminal

/// What is said of an account that does not exist.
enum UnknownAccount {
    /// - Parameter known: the accounts that do exist.
    static func text(_ name: String, known: [String]) -> String {
        let meant = NearestWord.find(for: name, among: known).map { " Did you mean \(Sanitizer.line($0))?" } ?? ""
        let names = known.map { Sanitizer.line($0) }.joined(separator: ", ")
        let list = known.isEmpty ? "None is configured." : "Known: \(names)."
        return "There is no account “\(Sanitizer.line(name))”.\(meant) \(list)"
    }

    /// The same for an account of the configuration.
    static func error(_ name: String, in report: JSON?) -> RingbackError {
        let known = (report?["accounts"]?.array ?? []).compactMap { $0["name"]?.string }
        return RingbackError(.accountNotFound, text(name, known: known))
    }
}
