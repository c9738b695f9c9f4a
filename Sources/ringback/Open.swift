import ArgumentParser
import RingbackClient

struct Open: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Hand over a callback URL: the handler of custom schemes.",
        discussion: "In a .desktop file: Exec=/usr/bin/ringback open %u")

    @Argument(help: "The callback URL.")
    var url: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        if let mistake = Callback.mistake(url) { throw ValidationError(mistake) }
    }

    func run() throws {
        try present { () throws(RingbackError) in
            try Callback.deliver(url, try daemon.calls(), isJSON: json.isWanted)
        }
    }
}
