import ArgumentParser
import CLinux
import Glibc
import RingbackClient
import StrictJSON
import Terminal

struct Open: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pass a callback URL to the daemon: the handler of custom schemes.",
        discussion: """
            ringback scheme register makes the desktop run this. A daemon that does not run is started by its socket \
            unit. A notification shows the result; if there is none, standard error does.
            """)

    @Argument(help: "The callback URL.")
    var url: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        if let mistake = Callback.mistake(url) { throw ValidationError(mistake) }
    }

    func run() throws {
        Open.hideArgument(url)
        let url = Callback.escaped(url)
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            do throws(RingbackError) {
                try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
            } catch {
                guard daemon.socket == nil, DaemonStart.helps(error) else { throw error }
                try DaemonStart.start()
                try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
            }
        }
    }

    /// Every user of the machine can read a program's arguments while it runs, and this one waits for the provider. So
    /// the code is removed from the arguments before it is sent to the daemon.
    static func hideArgument(_ url: String) {
        for (index, argument) in CommandLine.arguments.enumerated() where argument == url {
            clinux_forget_argument(Int32(index))
        }
    }
}

/// Starts a daemon that does not run, as a first connection to its socket would.
enum DaemonStart {
    /// systemd's own limit for a unit is longer. A user waits this long.
    private static let bound: Duration = .seconds(10)
    private static let command = ["systemctl", "--user", "start", "ringback.socket"]

    /// True if no daemon responds at a known socket.
    static func helps(_ error: RingbackError) -> Bool { error.kind == .noDaemon && error.recovery != .fixConfiguration }

    /// - Throws: `no_daemon`, with what to do.
    static func start() throws(RingbackError) {
        guard let answer = Tool.run(command, within: bound) else {
            throw RingbackError(
                .noDaemon, "No daemon answers, and there is no systemctl to start it with. Run: ringbackd",
                recovery: .fixConfiguration)
        }
        guard answer.status == 0 else {
            throw RingbackError(
                .noDaemon,
                "No daemon answers, and its socket unit cannot be started. Look: systemctl --user status ringback.socket",
                recovery: .fixConfiguration)
        }
    }
}
