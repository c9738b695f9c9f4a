internal import Glibc

/// What a started program may know of our environment: where the person's things are, and nothing that changes how
/// programs are loaded, traced or routed (`LD_*`, proxies, `SSLKEYLOGFILE`), nor any secret somebody put there.
enum CleanEnvironment {
    private static let kept: Set<String> = [
        "PATH", "HOME", "USER", "LANG", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK",
        "GPG_TTY", "GNUPGHOME", "PASSWORD_STORE_DIR",
    ]

    /// What the helper may know beside that: where logind is. No command needs it.
    private static let keptForHelper: Set<String> = ["DBUS_SYSTEM_BUS_ADDRESS"]

    /// What a program with windows may know beside what every command may: how the person's desktop is reached and which
    /// one it is, for openers go by that.
    private static let keptForApplications: Set<String> = [
        "XAUTHORITY", "BROWSER", "LANGUAGE", "SHELL", "LOGNAME", "DESKTOP_SESSION", "KDE_FULL_SESSION",
        "KDE_SESSION_VERSION", "GNOME_DESKTOP_SESSION_ID", "TZ",
    ]

    /// Our own environment, cleaned, as `NAME=value` lines.
    static func current(forHelper: Bool = false, forApplications: Bool = false) -> [String] {
        var lines: [String] = []
        var next = unsafe environ
        while let line = unsafe next.pointee {
            lines.append(unsafe String(cString: line))
            unsafe next += 1
        }
        return clean(lines, forHelper: forHelper, forApplications: forApplications)
    }

    /// The lines that are kept. Without a PATH, the usual one is set: a program's name must mean something.
    static func clean(_ lines: [String], forHelper: Bool = false, forApplications: Bool = false) -> [String] {
        var result = lines.filter { line in
            guard let equals = line.firstIndex(of: "=") else { return false }
            let name = line[..<equals]
            return kept.contains(String(name)) || name.hasPrefix("XDG_")
                || forHelper && keptForHelper.contains(String(name))
                // The helper hands them on.
                || (forHelper || forApplications)
                    && (keptForApplications.contains(String(name)) || name.hasPrefix("LC_"))
        }
        if !result.contains(where: { $0.hasPrefix("PATH=") }) { result.append("PATH=/usr/local/bin:/usr/bin:/bin") }
        return result
    }
}
