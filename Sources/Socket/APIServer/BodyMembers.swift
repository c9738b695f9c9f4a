internal import RingbackAPI
internal import Secrets
internal import StrictJSON

/// A request's body may have the members that its route lists, and no others. If another member were ignored, a
/// misspelt password would not be changed, and a misspelt limit would not hold.
extension Call {
    /// Rejects a member that the route does not read, even if it is null, and names the most similar known member.
    func refuseUnknownMembers() throws(Problem) {
        guard !wholeBody.names.isEmpty, let known = route.bodyMembers,
            let stranger = wholeBody.names.first(where: { !known.contains($0) })
        else { return }
        let meant = NearestWord.find(for: stranger, among: known).map { "; did you mean \($0)?" } ?? "."
        let list = known.isEmpty ? "It has none." : "It has: \(known.joined(separator: ", "))."
        throw Problem(
            .validationFailed, "\(Call.shown(stranger)): this request has no such member\(meant) \(list)")
    }

    /// A name from the caller, shortened for a sentence that may be shown on a terminal.
    static func shown(_ name: String) -> String {
        let letters = name.unicodeScalars.filter { $0.properties.generalCategory != .control }
        let start = String(String.UnicodeScalarView(letters.prefix(64)))
        return letters.count > 64 ? start + "…" : start
    }

    /// A new password. If it is stated twice, both must be the same.
    func newPassword() throws(Problem) -> Secret? {
        let password = try secret("password")
        guard let again = try secret("password_confirmation") else { return password }
        guard password == again else {
            throw invalid("password_confirmation", "must be the same as password")
        }
        return password
    }
}
