import RingbackClient
import StrictJSON
import Terminal

/// The assurance levels of a session. A sign-in by password alone must not look complete if the user has a second
/// factor.
enum Assurance {
    /// `aal1`, or `aal1, needs aal2`; nil where the provider has no levels.
    static func text(_ level: String?, _ next: String?) -> String? {
        guard let level else { return nil }
        guard let next, next != level else { return level }
        return "\(level), needs \(next)"
    }

    /// What is left to do after a sign-in; nil if nothing is.
    static func hint(_ name: String, _ account: JSON) -> String? {
        guard let level = account["aal"]?.string, let next = account["next_aal"]?.string, level != next else {
            return nil
        }
        return "A second factor must still be verified (\(Sanitizer.line(level)), needs \(Sanitizer.line(next))). "
            + "Run: \(shown: "ringback supabase verify-factor \(name)")"
    }
}
