/// Paths of the callback listener's own pages, which no redirect URI may have.
public enum CallbackPaths {
    public static let done = "/done"
    public static let failed = "/failed"
    public static let noted = "/noted"
    public static let outdated = "/older"
    /// The beginning of a start page's path. A key follows it.
    public static let start = "/start/"

    public static func isReserved(_ path: String) -> Bool {
        [done, failed, noted, outdated].contains(path) || path.hasPrefix(start)
    }

    /// The list of these paths for messages.
    public static let reservedText = "\(done), \(failed), \(noted), \(outdated) and \(start)"
}
