import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// The checks behind a restricted socket: what it serves, and nothing of this machine. The files, units and browsers
/// here are not the daemon's.
extension DoctorExamination {
    /// - Throws: `account_not_found` for an account that the socket does not show, and any error of the socket itself.
    mutating func lookThrough(_ grant: JSON) throws(RingbackError) {
        guard let calls else { return }
        // The other end is not this machine. The account names that it sends become part of a command line.
        let shown = (grant["accounts"]?.array ?? []).compactMap(\.string).filter(RequestTarget.isAccountName)
        if let account, !shown.contains(account) {
            throw RingbackError(
                .policyDenied,
                "This restricted socket does not show \(account), only \(shown.joined(separator: ", ")).")
        }
        let status = try calls.call(.getStatus, timeout: .seconds(5))
        let isLocked = status["vault"]?["locked"]?.bool == true
        if isLocked {
            report.add(
                "vault", .warning, "The vault is locked: no session is served. \(Elsewhere.place) ringback unlock")
        }
        let known = try calls.call(.listAccounts, timeout: .seconds(5))["accounts"]?.array ?? []
        for name in shown where account.map({ $0 == name }) ?? true {
            let document = known.first { $0["name"]?.string == name }
            // That the vault is locked is said once.
            if isLocked, document?["state"]?.string == "loading" { continue }
            report.add(DoctorExamination.line(name, document))
        }
        report.add("elsewhere", .ok, "For everything else: \(Elsewhere.place) ringback doctor")
    }

    private static func line(_ name: String, _ account: JSON?) -> DoctorReport.Line {
        func line(_ level: DoctorReport.Level, _ message: String) -> DoctorReport.Line {
            DoctorReport.Line(check: "session", subject: ("account", name), level: level, message: message)
        }
        guard let account, let state = account["state"]?.string else {
            return line(.warning, "The account is not configured any more where the daemon runs.")
        }
        if let error = RingbackError(reading: account["error"]) {
            let step = Failure(error, account: name).nextStep
            return line(.warning, error.detail + (step.map { " \($0)" } ?? ""))
        }
        if account["stale"]?.bool == true {
            return line(.warning, "The access token has expired, and the provider cannot be reached.")
        }
        guard ["authenticated", "refreshing"].contains(state) else {
            return line(.warning, "The account is \(state). \(Elsewhere.place) \(shown: "ringback login \(name)")")
        }
        return line(.ok, "The account is \(state).")
    }
}
