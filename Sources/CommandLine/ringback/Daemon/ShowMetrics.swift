import ArgumentParser
import RingbackAPI
import RingbackClient
import Terminal

struct ShowMetrics: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics", abstract: "Print the daemon's metrics, in Prometheus's text format.",
        discussion: "For node_exporter's textfile collector: ringback metrics > FILE.new && mv FILE.new FILE.prom")

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let text = try daemon.calls().text(.getMetrics)
            for line in text.split(separator: "\n") { Output.line(Sanitizer.line(String(line), limit: 4_096)) }
        }
    }
}
