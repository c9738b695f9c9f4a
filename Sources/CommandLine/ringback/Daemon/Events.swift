import ArgumentParser
import RingbackBase
import RingbackClient
import Terminal

struct Events: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print events, one per line, until Ctrl-C.",
        discussion: "Begins with an initial_session for each account. Exit status 2: the daemon ended.")

    @Argument(help: "Only this account.", completion: Completions.accounts)
    var account: String?

    @Flag(name: .customLong("json"), help: "Print one JSON object per line.")
    var isJSON = false

    @Flag(help: "Print telemetry events instead, as JSON: how users sign in, and with what result.")
    var telemetry = false

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            do throws(RingbackError) {
                // The name is checked first, so that an impossible one gets its own error.
                if let account { try RequestTarget.checkAccount(account) }
                let events = try daemon.calls(try Signals.interruption()).openEvents(
                    account: account, isTelemetry: telemetry)
                while let event = try events.next() { try show(event) }
            } catch {
                if error.kind == .cancelled { return }
                throw error
            }
            throw RingbackError(.noDaemon, "The daemon ended the stream of events.", recovery: .retry)
        }
    }

    private func show(_ event: ServerSentEvents.Event) throws(RingbackError) {
        guard let data = try? JSON(parsing: event.data.utf8) else {
            throw RingbackError(.badResponse, "An event's data is not valid JSON.")
        }
        guard !telemetry else { return Output.json(data) }
        guard !isJSON else {
            var object = JSONObject([.init("event", .string(event.name))])
            if let id = event.id { object["id"] = .string(id) }
            for member in data.object?.members ?? [] { object[member.name] = member.value }
            return Output.json(.object(object))
        }
        let words: [String?] = [
            TimeText.timeOfDay(data["at"]?.integer ?? TimeText.now()),
            data["account"]?.string ?? data["scheme"]?.string, event.name,
            data["state"]?.string, data["user"]?["email"]?.string ?? data["subject"]?.string,
            data["ends_at"]?.integer.map { "ends in \(TimeText.span($0 - TimeText.now()))" },
            data["reason"]?.string, data["seconds"]?.integer.map { "after \(TimeText.span($0))" },
            RingbackError(reading: data["error"])?.detail,
        ]
        Output.line(words.compactMap { $0.map { Sanitizer.line($0) } }.joined(separator: "  "))
    }
}
