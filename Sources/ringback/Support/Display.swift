import RingbackClient

/// What this terminal can show a person beside text.
enum Display {
    /// True where a browser can be opened: on a display, or by what the person says opens one.
    static var hasBrowser: Bool { hasBrowser(SocketPlace.variable) }

    static func hasBrowser(_ environment: (String) -> String?) -> Bool {
        ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { environment($0)?.isEmpty == false }
    }
}
