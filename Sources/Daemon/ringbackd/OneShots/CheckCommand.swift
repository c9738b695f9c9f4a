import BrokerCore
import Configuration

/// `ringbackd --check-config`: the configuration is read and checked; no daemon is started.
enum CheckCommand {
    /// Checks the configuration without a running daemon. Returns 0, or 78 after every mistake was printed.
    static func run(_ place: ConfigurationPlace, _ options: Options) -> Int32 {
        var place = place
        place.candidate = options.candidate
        if let path = options.draft.path, let original = options.draft.original {
            place.draft = ConfigurationPlace.Draft(of: original, at: path)
        }
        place.credentials = environment("CREDENTIALS_DIRECTORY").map {
            GivenCredentials(directory: $0, names: Set(options.credentials.map(\.name)))
        }
        let report = ConfigurationReport(of: place, exposedByHand: exposedByHand(options))
        if options.isJSON {
            print(report.json)
        } else if report.isValid {
            print("The configuration has no mistakes.")
        } else {
            complain("the configuration has mistakes:\n\(StartAdvice.text(report.errors))")
        }
        return report.isValid ? 0 : ExitStatus.badConfiguration
    }

    /// The names of the sockets that calls made, if the state directory is known to belong to this configuration: a
    /// file that is named may be for another daemon.
    private static func exposedByHand(_ options: Options) -> Set<String> {
        guard options.configuration == nil || options.state != nil, let state = Places.state(options) else { return [] }
        return ExposedSocketRegistry.namesOfCalls(in: ExposedSocketRegistry.file(in: state))
    }
}
