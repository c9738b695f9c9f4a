import OAuth
import RingbackBase
import Testing

@Suite struct `A bearer challenge` {
    private func read(_ values: String...) -> BearerChallenge? {
        BearerChallenge(in: HTTPFields(values.map { ("WWW-Authenticate", $0) }))
    }

    @Test func `says where the metadata are, and which scopes are demanded`() throws {
        let challenge = try #require(
            read(
                #"Bearer realm="mcp", error="insufficient_scope", scope="mcp:read mcp:write mcp:read", "#
                    + #"resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp""#))
        #expect(challenge.resourceMetadata == "https://mcp.example/.well-known/oauth-protected-resource/mcp")
        #expect(challenge.scopes == ["mcp:read", "mcp:write"])
        #expect(challenge.error == "insufficient_scope" && challenge.demandsScopes)
    }

    @Test(arguments: [
        #"Basic realm="a, Bearer scope=b", bEaReR scope=c"#, #"Negotiate abc==, Bearer scope="c""#,
        "Negotiate , ,Bearer SCOPE =\t c", #"Bearer scope="\c", Bearer scope=d"#, #"Digest a="x\"y", Bearer scope=c"#,
    ]) func `is found among other challenges`(value: String) {
        #expect(read(value)?.scopes == ["c"])
    }

    @Test func `is found in a second field, and may be empty`() {
        #expect(read("Basic x", "Bearer scope=a")?.scopes == ["a"])
        #expect(read("Bearer")?.scopes == [])
    }

    @Test(arguments: [
        "", "Basic realm=x", #"Bearer scope="a"#, "Bearer scope=a, scope=b", "=a", "Bearer a=b, scope=",
        "Bearer;scope=a",
        "scope=a, Bearer", #"Bearer scope="a\"#,
    ]) func `is none where there is none, and where the grammar is broken`(value: String) {
        #expect(read(value) == nil)
    }

    @Test func `takes only what can be a scope`() {
        #expect(read(#"Bearer scope="a \"b\" ä c""#)?.scopes == ["a", "c"])
    }
}
