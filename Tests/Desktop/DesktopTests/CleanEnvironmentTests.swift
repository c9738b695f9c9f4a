import Testing

@testable import Desktop

@Suite struct `The environment of a command` {
    @Test func `keeps where the person's things are`() {
        let lines = [
            "PATH=/bin", "HOME=/home/ada", "USER=ada", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=/run/user/1000",
            "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/bus", "DISPLAY=:0", "WAYLAND_DISPLAY=wayland-0",
            "SSH_AUTH_SOCK=/run/agent", "GPG_TTY=/dev/pts/0", "GNUPGHOME=/home/ada/.gnupg", "PASSWORD_STORE_DIR=/p",
        ]
        #expect(CleanEnvironment.clean(lines) == lines)
    }

    @Test func `loses everything else`() {
        let lines = [
            "PATH=/bin", "LD_PRELOAD=/evil.so", "https_proxy=http://evil", "SSLKEYLOGFILE=/tmp/keys", "SECRET=1",
            "SWIFT_BACKTRACE=enable=yes", "RINGBACK_CONFIG=/etc/x", "BASH_ENV=/evil", "=", "PATHS=1", "nonsense",
        ]
        #expect(CleanEnvironment.clean(lines) == ["PATH=/bin"])
    }

    @Test func `has the system bus's address for the helper alone`() {
        let lines = ["PATH=/bin", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/bus", "LD_PRELOAD=/evil.so"]
        #expect(CleanEnvironment.clean(lines) == ["PATH=/bin"])
        #expect(CleanEnvironment.clean(lines, forHelper: true) == Array(lines[..<2]))
    }

    @Test func `tells a program with windows how the desktop is reached`() {
        let lines = ["PATH=/bin", "XAUTHORITY=/home/ada/.Xauthority", "LC_TIME=ru_RU.UTF-8", "BROWSER=firefox"]
        #expect(CleanEnvironment.clean(lines) == ["PATH=/bin"])
        #expect(CleanEnvironment.clean(lines + ["LD_PRELOAD=/evil.so"], forApplications: true) == lines)
        // The helper hands them on.
        #expect(CleanEnvironment.clean(lines, forHelper: true) == lines)
    }

    @Test func `has a PATH in any case`() {
        #expect(CleanEnvironment.clean([]) == ["PATH=/usr/local/bin:/usr/bin:/bin"])
    }
}
