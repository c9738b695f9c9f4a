import ArgumentParser
import CLinux
import Glibc
import RingbackBase
import RingbackClient

struct Open: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Pass a callback URL to the daemon: the handler of custom schemes.",
        discussion: """
            ringback scheme register makes the desktop run this. A daemon that does not run is started by its socket \
            unit. A notification shows the result; if there is none, standard error does.
            """)

    @Argument(help: "The callback URL.") var url: String
    @OptionGroup var options: CallOptions

    func validate() throws {
        if let mistake = Callback.mistake(url) { throw ValidationError(mistake) }
    }

    func run() throws {
        Open.hideArgument(url)
        let url = Callback.escaped(url)
        let calls = try daemon.calls()
        do throws(RingbackError) {
            try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
        } catch {
            guard daemon.socket == nil, error.kind == .noDaemon, error.recovery != .fixConfiguration else {
                throw error
            }
            try startDaemon()
            try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
        }
    }

    /// Every user of the machine can read a program's arguments while it runs, and this one waits for the provider. So
    /// the code is removed from the arguments before it is sent to the daemon.
    static func hideArgument(_ url: String) {
        for (index, argument) in CommandLine.arguments.enumerated() where argument == url {
            clinux_forget_argument(Int32(index))
        }
    }

    /// As a first connection to the socket of a daemon that does not run would.
    private func startDaemon() throws(RingbackError) {
        // systemd's own limit for a unit is longer. A user waits this long.
        let answer = Tool.systemctl("start", "ringback.socket")
        guard answer?.status != 0 else { return }
        throw RingbackError(
            .noDaemon,
            answer == nil
                ? "No daemon answers, and there is no systemctl to start it with. Run: ringbackd"
                : "No daemon answers, and its socket unit cannot be started. Look: systemctl --user status ringback.socket",
            recovery: .fixConfiguration)
    }
}
