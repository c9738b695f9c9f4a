/// Where `ringback-relay` listens.
public enum RelaySocket {
    /// `ringback.sock` has `ringback-relay.sock` beside it.
    public static func path(beside daemon: String) -> String {
        (daemon.hasSuffix(".sock") ? String(daemon.dropLast(5)) : daemon) + "-relay.sock"
    }
}
