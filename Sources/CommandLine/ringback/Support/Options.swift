import ArgumentParser
import RingbackClient

/// Where the daemon is, on every verb that asks it.
struct DaemonOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The daemon's socket, if not the usual one.", valueName: "path"))
    var socket: String?

    func calls(_ interruption: Interruption? = nil) throws(RingbackError) -> BrokerCalls {
        try Daemon.calls(socket: socket, interruption)
    }
}

/// The connection to the daemon.
enum Daemon {
    static func calls(socket: String?, _ interruption: Interruption? = nil) throws(RingbackError) -> BrokerCalls {
        BrokerCalls(
            socket: try SocketPlace.path(stated: socket), application: "ringback", interruption: interruption)
    }
}

/// For the verbs that print data.
struct JSONOption: ParsableArguments {
    @Flag(name: .customLong("json"), help: "Print JSON.")
    var isWanted = false
}

/// Runs a verb's work. A failure is printed on standard error and becomes the exit status.
func present(account: String? = nil, _ work: () throws(RingbackError) -> Void) throws {
    do throws(RingbackError) {
        try work()
    } catch {
        Failure(error, account: account).show()
        throw ExitCode(ExitStatus.of(error))
    }
}
