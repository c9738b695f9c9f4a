import Confinement
import Testing

@Suite struct `The hosts that are reached without a proxy` {
    @Test(arguments: [
        ([:], "127.0.0.1", "127.0.0.1"), (["no_proxy": "a.test"], "a.test,127.0.0.1", "a.test,127.0.0.1"),
        (["no_proxy": "", "NO_PROXY": "b.test"], "b.test,127.0.0.1", "b.test,127.0.0.1"),
        (["no_proxy": "a.test", "NO_PROXY": "b.test"], "a.test,127.0.0.1", "b.test,127.0.0.1"),
        (["no_proxy": "*"], "*", "*"),
    ])
    func `a host is added to those of both variables`(own: [String: String], lower: String, upper: String) {
        let found = ProxyExceptions.adding("127.0.0.1", to: { own[$0] })
        #expect(found.map(\.name) == ["no_proxy", "NO_PROXY"])
        #expect(found.map(\.value) == [lower, upper])
    }
}
