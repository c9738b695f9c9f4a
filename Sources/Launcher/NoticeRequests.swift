public import DesktopBus
internal import StrictJSON

// Notices on the person's desktop, through the helper, which alone talks to the bus.
extension HelperConnection {
    /// Three calls of a few seconds each, where a server hangs.
    private static let timeout: Duration = .seconds(20)

    /// Shows a notice, in the place of another one if that is still shown. That nobody is there to show it is an
    /// answer, not an error.
    public func notify(
        _ notice: Notice, replacing former: ShownNotice? = nil
    ) async throws(HelperError) -> NotificationPresenter.Showing {
        var members = notice.members
        members["do"] = "notify"
        members["replaces"] = former.map { .integer(Int($0.id)) }
        let answer = try await request(members, timeout: HelperConnection.timeout)
        guard let showing = NotificationPresenter.Showing(members: answer.members) else { throw .ended }
        return showing
    }

    /// Takes a notice away, if it is still shown.
    public func closeNotice(_ notice: ShownNotice) async throws(HelperError) {
        let members = JSONObject([.init("do", "close_notice"), .init("notice", .integer(Int(notice.id)))])
        _ = try await request(members, timeout: HelperConnection.timeout)
    }
}
