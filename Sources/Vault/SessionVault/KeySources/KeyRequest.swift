/// Why a key is requested. A source that would have to show a prompt (a keyring's window) does so only if a user's
/// request needs the key. The daemon never shows a prompt by itself.
public enum KeyRequest {
    /// True in a task that handles a user's request, and in its child tasks.
    @TaskLocal public static var isInteractive = false
}
