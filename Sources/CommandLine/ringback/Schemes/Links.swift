import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct Links: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print an app's links, one per line, until Ctrl-C.",
        discussion: """
            Prints links of the scheme that end no sign-in; first those that no app has acknowledged. Printing a link \
            acknowledges it. Exit status 2: the daemon ended; 4: another program listens now.
            """)

    @Argument(help: "The scheme, without its colon.", completion: Completions.schemes)
    var scheme: String

    @Flag(name: .customLong("json"), help: "Print one JSON object per line.")
    var isJSON = false

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            do throws(RingbackError) {
                try follow(try daemon.calls(interruption))
            } catch {
                if interruption.isInterrupted { return }
                throw error
            }
        }
    }

    /// Prints links until the stream ends.
    ///
    /// - Throws: always, with the reason why the stream ended.
    private func follow(_ calls: BrokerCalls) throws(RingbackError) {
        let events = try calls.openDeepLinks(scheme: scheme)
        while let event = try events.next() {
            switch event.name {
            case "deep_link": try take(event, calls)
            case "listener_replaced":
                throw RingbackError(.cancelled, "Another program listens for the links of \(scheme) now.")
            case "dropped":
                throw RingbackError(
                    .notFound, "The scheme \(scheme) is not configured any more.", recovery: .fixConfiguration)
            default: break
            }
        }
        throw RingbackError(.noDaemon, "The daemon ended the stream of links.", recovery: .retry)
    }

    private func take(_ event: ServerSentEvents.Event, _ calls: BrokerCalls) throws(RingbackError) {
        guard let data = try? JSON(parsing: event.data.utf8) else {
            throw RingbackError(.badResponse, "A link's data is not valid JSON.")
        }
        let link = try DeepLink(reading: data)
        if isJSON { Output.json(data) } else { Output.line(Sanitizer.line(link.url, limit: Callback.maxLength)) }
        try calls.acknowledge(link)
    }
}
