import RingbackClient

/// What can be shown to the user besides text.
enum Display {
    /// True where a browser can be opened: there is a display, or BROWSER is set.
    static var hasBrowser: Bool { hasBrowser(SocketPlace.variable) }

    static func hasBrowser(_ environment: (String) -> String?) -> Bool {
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { environment($0)?.isEmpty == false }
    }
}
