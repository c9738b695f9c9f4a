import RingbackBase
import Testing

@testable import Adapters

@Suite struct `docker's configuration` {
    private func read(_ text: String) throws -> DockerConfiguration {
        try DockerConfiguration(reading: Array(text.utf8))
    }

    private func added(_ text: String, _ registries: String...) throws -> String {
        var configuration = try read(text)
        for registry in registries { configuration.add(registry) }
        return String(decoding: configuration.bytes, as: UTF8.self)
    }

    @Test func `a new file is written as docker writes it`() throws {
        var configuration = try DockerConfiguration(reading: nil)
        configuration.add("r.example.org")
        configuration.add("s.example.org:5000")
        let text = String(decoding: configuration.bytes, as: UTF8.self)
        #expect(
            text
                == "{\n\t\"credHelpers\": {\n\t\t\"r.example.org\": \"ringback\",\n\t\t\"s.example.org:5000\": \"ringback\"\n\t}\n}\n"
        )
        #expect(configuration.registries == ["r.example.org", "s.example.org:5000"])
    }

    @Test func `everything else stays, with its order and its indentation`() throws {
        #expect(
            try added("{\n  \"auths\": {\"a\": {}},\n  \"credsStore\": \"pass\"\n}", "r")
                == "{\n  \"auths\": {\"a\": {}},\n  \"credsStore\": \"pass\",\n  \"credHelpers\": {\n    \"r\": \"ringback\"\n  }\n}"
        )
        #expect(
            try added("{\r\n\t\"credHelpers\": {},\r\n\t\"z\": 1.50\r\n}\r\n", "r")
                == "{\r\n\t\"credHelpers\": {\r\n\t\t\"r\": \"ringback\"\r\n\t},\r\n\t\"z\": 1.50\r\n}\r\n")
        #expect(try added(#"{"a":1}"#, "r", "s") == #"{"a":1,"credHelpers": {"r": "ringback","s": "ringback"}}"#)
        #expect(
            try added(#"{"credHelpers":{"gcr.io":"gcloud"},"a":"}\"{"}"#, "r")
                == #"{"credHelpers":{"gcr.io":"gcloud","r": "ringback"},"a":"}\"{"}"#)
    }

    private static let texts = [
        "{}", "{}\n", "{\n}\n", #"{"a":[1,{"b":"]"}],"c":null}"#, "{\n\t\"auths\": {\n\t\t\"x\": {}\n\t}\n}\n",
        "{ \"credHelpers\": { \"gcr.io\": \"gcloud\" } }", "\n {\"a\" : true}", #"{"x":-1.5e3 , "y" :false }"#,
        #"{"\u0063redHelpers":{"g\"}":"other"}, "a":0}"#,
    ]

    @Test(arguments: texts) func `what was added is removed again, and nothing else`(text: String) throws {
        var configuration = try read(text)
        for registry in ["r.example.org", "[::1]:5000", "r.example.org"] { configuration.add(registry) }
        #expect(configuration.registries == ["r.example.org", "[::1]:5000"])
        let changed = try JSON(parsing: configuration.bytes)
        var expected = try #require(try JSON(parsing: text.utf8).object)
        var helpers = expected["credHelpers"]?.object ?? JSONObject()
        for registry in ["r.example.org", "[::1]:5000"] { helpers[registry] = "ringback" }
        expected["credHelpers"] = .object(helpers)
        #expect(changed == .object(expected))
        for registry in ["[::1]:5000", "r.example.org"] { configuration.remove(registry) }
        #expect(try JSON(parsing: configuration.bytes) == JSON(parsing: text.utf8))
        if text != "{\n}\n" { #expect(String(decoding: configuration.bytes, as: UTF8.self) == text) }
    }

    @Test func `the first of several is removed with its comma`() throws {
        var configuration = try read(#"{"credHelpers": {"r": "ringback", "gcr.io": "gcloud"}, "a": 1}"#)
        configuration.remove("r")
        configuration.remove("gcr.io")
        #expect(
            String(decoding: configuration.bytes, as: UTF8.self) == #"{"credHelpers": {"gcr.io": "gcloud"}, "a": 1}"#)
    }

    @Test func `another program's entry is named and stays`() throws {
        var configuration = try read(#"{"credHelpers": {"r": "pass"}}"#)
        #expect(configuration.otherHelper(of: "r") == "pass" && configuration.registries.isEmpty)
        let former = configuration
        configuration.add("r")
        configuration.remove("r")
        #expect(configuration == former)
    }

    @Test func `what cannot be read is refused`() {
        for text in ["", "[]", "null", "{", #"{"a":1,"a":2}"#, "\u{FEFF}{}", "{} x", "// c\n{}"] {
            #expect(throws: DockerConfiguration.Failure.notAnObject, "\(text)") { try read(text) }
        }
        for text in [#"{"credHelpers":null}"#, #"{"credHelpers":[]}"#, #"{"credHelpers":{"a":1}}"#] {
            #expect(throws: DockerConfiguration.Failure.helpersUnreadable, "\(text)") { try read(text) }
        }
    }

    @Test func `a registry is an https origin without path and user`() throws {
        func registry(_ text: String, _ username: String? = nil) throws -> String? {
            DockerConfiguration.registry(of: OriginRule(try OriginPattern(parsing: text), username: username))
        }
        #expect(try registry("https://r.example.org:5000/*") == "r.example.org:5000")
        #expect(try registry("https://r.example.org/team/*") == nil)
        #expect(try registry("https://r.example.org", "ada") == nil)
        #expect(try registry("imaps://r.example.org") == nil)
    }
}
