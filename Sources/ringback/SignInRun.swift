import Glibc
import RingbackClient
import StrictJSON
import Terminal

/// A sign-in from its start to its end, for `login` and `token --sign-in`: shows the page, waits, and withdraws when
/// it is interrupted.
struct SignInRun {
    let account: String
    /// Shows the page itself; otherwise `began` has to.
    var opensBrowser: Bool
    /// The request's body.
    var fields = JSONObject([.init("method", "browser")])
    /// Called with the flow once there is one.
    var began: (Flow, JSON) -> Void = { _, _ in }

    init(account: String, opensBrowser: Bool) {
        self.account = account
        self.opensBrowser = opensBrowser
    }

    /// Gives the account's JSON once somebody is signed in.
    ///
    /// - Throws: `cancelled` after a signal: the interest is withdrawn then.
    func finish(_ calls: BrokerCalls) throws(RingbackError) -> JSON {
        // Without its answer there would be nothing to withdraw, so the first request is not interrupted.
        var patient = calls
        patient.interruption = nil
        let flow: Flow
        switch try patient.signIn(account, fields) {
        case .done(let account): return account
        case .flow(let started, let json):
            flow = started
            began(started, json)
        }
        let ended: Flow
        do throws(RingbackError) {
            ended = try wait(for: flow, calls)
        } catch {
            if error.kind == .cancelled {
                try? patient.withdraw(flow: flow.id)
                throw RingbackError(.cancelled, "The sign-in to \(account) was withdrawn.")
            }
            throw error
        }
        if var failure = ended.failure {
            if failure.kind == .stateConflict {
                failure.detail += " To replace the held session, run: ringback login \(account) --switch"
            }
            throw failure
        }
        return try patient.account(account)
    }

    /// `Signed in to ACCOUNT as EMAIL-or-subject`
    static func result(_ name: String, _ account: JSON) -> String {
        let who = account["user"]?["email"]?.string ?? account["subject"]?.string ?? "an unnamed subject"
        return "Signed in to \(name) as \(Sanitizer.line(who))"
    }

    private func wait(for flow: Flow, _ calls: BrokerCalls) throws(RingbackError) -> Flow {
        var browser: Int32?
        if opensBrowser, let url = flow.authorizationURL {
            browser = Browser.start(url)
            if browser == nil { showPage(url) }
        }
        let progress = ProgressLine()
        defer { progress.clear() }
        let waitingFor = SignInRun.describe(flow)
        func show() {
            let left = flow.expiresAt.map { ", \(TimeText.clock($0 - TimeText.now())) left" } ?? ""
            progress.show("Waiting for \(waitingFor)\(left) (Ctrl-C withdraws)")
        }
        show()
        return try calls.wait(forFlow: flow.id) {
            // An opener that ends badly showed nothing: then the person opens the page.
            if let pid = browser, let status = Subprocess.endedStatus(pid) {
                browser = nil
                if status != 0, let url = flow.authorizationURL {
                    progress.clear()
                    showPage(url)
                }
            }
            show()
        }.0
    }

    private func showPage(_ url: String) {
        // Not cut: a URL without its end is no URL.
        Output.note("Open this page in a browser:\n  \(Sanitizer.line(url, limit: 16_384))")
    }

    private static func describe(_ flow: Flow) -> String {
        let place = flow.authorizationURL.map { " at " + Sanitizer.line(host(of: $0)) } ?? ""
        return switch flow.waitingFor {
        case nil, "callback": "the sign-in to \(flow.account)\(place) in your browser"
        case "email_confirmation": "the confirmation by e-mail for \(flow.account)"
        case "device": "the sign-in to \(flow.account) on another device"
        case let other?: "\(Sanitizer.line(other)) for \(flow.account)"
        }
    }

    /// For display only: between `//` and what ends an authority.
    private static func host(of url: String) -> String {
        guard let scheme = url.firstIndex(of: ":") else { return url }
        return String(url[url.index(after: scheme)...].drop { $0 == "/" }.prefix { !"/?#".contains($0) })
    }
}
