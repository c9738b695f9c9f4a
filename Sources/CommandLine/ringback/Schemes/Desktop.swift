import HTTPMessages
import RingbackClient
import SchemeRegistration
import Terminal

/// The user's desktop, as far as schemes are concerned: where its files are, and which handler a scheme has.
struct SchemeDesktop {
    let places: DesktopPlaces

    init() throws(RingbackError) {
        guard let places = DesktopPlaces(environment: SocketPlace.variable) else {
            throw RingbackError(
                .systemError, "There is no place for the desktop's files: HOME is not set.",
                recovery: .fixConfiguration)
        }
        self.places = places
    }

    var registry: SchemeRegistry { SchemeRegistry(places: places) { Tool.run($0)?.status } }

    /// The handler that the desktop would start. `xdg-mime` is asked, if it is installed.
    func handler(of scheme: URLScheme) -> HandlerSearch.Handler? {
        let search = registry.search
        guard let answer = Tool.run(["xdg-mime", "query", "default", "x-scheme-handler/\(scheme)"]) else {
            return search.handler(of: scheme)
        }
        return answer.line.flatMap { search.handler(named: $0) }
    }

    /// True in a desktop session. Without one, an opener does something else.
    static var hasSession: Bool {
        ["DISPLAY", "WAYLAND_DISPLAY", "XDG_CURRENT_DESKTOP"].contains { SocketPlace.variable($0)?.isEmpty == false }
    }

    /// A warning before a sign-in whose callback would not come back, since another program is the scheme's handler.
    /// Nil for a redirect URI of another kind, and without a desktop session.
    static func warning(_ redirectURI: String?) -> String? {
        let word = redirectURI.map { String($0.prefix { $0 != ":" }) } ?? ""
        guard hasSession, let scheme = try? URLScheme(parsing: word), let desktop = try? SchemeDesktop() else {
            return nil
        }
        let handler = desktop.handler(of: scheme)
        guard handler?.ours == nil else { return nil }
        let who = handler.map { "go to \(Sanitizer.line($0.name))" } ?? "have no handler"
        return
            "warning: \(scheme) links \(who), so the response may not come back. "
            + "Run: \(shown: "ringback scheme register \(scheme.name)")"
    }
}
