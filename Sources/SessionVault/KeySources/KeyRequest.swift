/// Why a key is asked for. A source that would have to put a question to the person (a keyring's window) does so only
/// where a person has just asked for the key: no daemon throws windows at somebody by itself.
public enum KeyRequest {
    /// True in a task, and in those that it starts, that does what a person asked for.
    @TaskLocal public static var isByPerson = false
}
