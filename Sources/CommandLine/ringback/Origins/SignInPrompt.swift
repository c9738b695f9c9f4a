import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// While a tool waits on a terminal for a sign-in: Enter opens the sign-in page, or it is opened at once if the
/// account's configuration says so (`interactive = "open"`).
final class SignInPrompt {
    private let tool: String
    /// Nil if the daemon did not name it. Then no page can be opened from here.
    private let account: String?
    private let calls: BrokerCalls
    private let opensAtOnce: Bool
    private var hasOpened = false
    /// The sign-ins that the user has joined from here.
    private var joined: [String] = []

    init(tool: String, account: String?, _ calls: BrokerCalls) {
        self.tool = tool
        self.account = account
        self.calls = calls
        let known = account.flatMap { try? calls.account($0) }
        opensAtOnce = Display.hasBrowser && known?["interactive"] == "open"
        // What was typed before the question is no answer to it.
        if Console.Stream.errors.isInForeground { tcflush(STDERR_FILENO, TCIFLUSH) }
    }

    /// The line that says who waits, and what the user can do.
    var line: String {
        let waiting = "\(Sanitizer.line(tool)) is waiting for \(account.map { Sanitizer.line($0) } ?? "a sign-in")"
        let action =
            if account == nil || !Display.hasBrowser {
                ""
            } else {
                opensAtOnce ? " The sign-in page is opened." : " Press Enter to open the sign-in page."
            }
        return "\(waiting).\(action) Two minutes at most; Ctrl-C ends this."
    }

    /// To be called about once a second during the wait.
    func tick() {
        guard let account, Display.hasBrowser else { return }
        // The user who has just declined is not asked again: the daemon begins no sign-in then. Enter asks for one.
        let isAsked = SignInPrompt.hasEnter
        guard isAsked || !hasOpened && opensAtOnce && hasFlow(account) else { return }
        hasOpened = true
        do throws(RingbackError) {
            try open(account, isAsked: isAsked)
        } catch {
            Output.note("The sign-in page was not opened. \(Sanitizer.line(error.detail, limit: 400))")
        }
    }

    /// The daemon begins no sign-in by itself: waits for Enter, which begins one, as long as a tool waits.
    func beginAtEnter(_ refusal: RingbackError) throws(RingbackError) {
        let reason = "A sign-in was denied or cancelled in the last five minutes, so none begins by itself."
        guard let account, Display.hasBrowser, Console.Stream.errors.isInForeground else {
            throw refusal.with(detail: reason)
        }
        Output.note("\(reason) Press Enter to begin one.")
        let end = ContinuousClock.now + .seconds(120)
        while !SignInPrompt.hasEnter {
            guard !Signals.isInterrupted else { throw RingbackError(.cancelled, "The wait was cancelled.") }
            guard .now < end else { throw refusal.with(detail: reason) }
            let descriptors = [STDERR_FILENO, try Signals.interruption().descriptor]
            var awaited = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = unsafe poll(&awaited, nfds_t(awaited.count), 1_000)
        }
        hasOpened = true
        try open(account, isAsked: true)
    }

    private func hasFlow(_ account: String) -> Bool { (try? calls.account(account))?["flow"] != nil }

    /// Joins the sign-in that the wait has begun. The browser gets an address that works once. Of many tools that wait
    /// at the same time, the first one opens the page, unless the user asks for it.
    private func open(_ account: String, isAsked: Bool) throws(RingbackError) {
        guard case .flow(let flow, _) = try calls.signIn(account, ["method": "browser"]) else { return }
        joined.append(flow.id)
        guard let url = flow.openURL else { return Output.note(PageOpening.noAddress(flow.openURLError)) }
        guard isAsked || flow.openAddresses.first?.url == url else { return }
        let browser = AccountBrowser(of: try? calls.account(account), by: calls)
        if !browser.open(url) { Output.note(browser.notStarted(url)) }
    }

    /// After Ctrl-C nobody waits here. If the time is over, the page stays good for the next start of the tool.
    func leave() { for flow in joined { try? calls.cancel(flow: flow) } }

    /// True if the user has pressed Enter. The tool's own input is not read, but the terminal of standard error. A
    /// process in the background must not read it: the kernel would stop it (SIGTTIN).
    private static var hasEnter: Bool { Console.Stream.errors.readTyped() == [0x0A] }
}
