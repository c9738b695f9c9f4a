import Glibc
import Testing

@testable import Configuration

@Suite struct `The place of the configuration` {
    private func file(_ option: String?, _ environment: [String: String]) -> String? {
        ConfigurationPlace.standard(option: option, environment: environment).userFile
    }

    @Test func `is named by option, variable, XDG and home, in this order`() {
        let all = ["RINGBACK_CONFIG": "/r/c.toml", "XDG_CONFIG_HOME": "/x", "HOME": "/home/ada"]
        #expect(file("/o/c.toml", all) == "/o/c.toml")
        #expect(file(nil, all) == "/r/c.toml")
        #expect(file(nil, ["XDG_CONFIG_HOME": "/x", "HOME": "/home/ada"]) == "/x/ringback/config.toml")
        #expect(file(nil, ["HOME": "/home/ada"]) == "/home/ada/.config/ringback/config.toml")
        #expect(file(nil, ["XDG_CONFIG_HOME": "relative", "HOME": "/h"]) == "/h/.config/ringback/config.toml")
        #expect(file(nil, ["RINGBACK_CONFIG": "", "HOME": "/h"]) == "/h/.config/ringback/config.toml")
        #expect(file(nil, [:]) == nil)
    }

    @Test func `is explicit if somebody named it`() {
        #expect(ConfigurationPlace.standard(option: "/c", environment: [:]).isExplicit)
        #expect(ConfigurationPlace.standard(option: nil, environment: ["RINGBACK_CONFIG": "/c"]).isExplicit)
        #expect(!ConfigurationPlace.standard(option: nil, environment: ["HOME": "/h"]).isExplicit)
    }

    @Test func `has drop-ins of the system first, then those beside the file`() {
        let place = ConfigurationPlace.standard(option: "/o/c.toml", environment: ["HOME": "/h"])
        #expect(
            place.dropInDirectories == ["/usr/share/ringback/accounts.d", "/etc/ringback/accounts.d", "/o/accounts.d"])
        #expect(place.user == geteuid())
    }

    @Test func `is absolute whatever was written`() throws {
        #expect(file("c.toml", [:])?.hasPrefix("/") == true)
        #expect(file("c.toml", [:])?.hasSuffix("/c.toml") == true)
    }

    @Test func `gives the tilde its meaning`() {
        let place = ConfigurationPlace.standard(option: "/c", environment: ["HOME": "/h"])
        #expect(place.path("~/x") == "/h/x")
        #expect(place.path("/x") == "/x")
        #expect(place.path("x") == nil)
        #expect(place.path("~ada/x") == nil)
        #expect(ConfigurationPlace.standard(option: "/c", environment: [:]).path("~/x") == nil)
    }
}
