import Foundation
import SystemIO
import TestSupport
import Testing

struct HostTests {
  @Test func clocksMatchTheSystem() {
    let before = Host.now()
    let system = Date().timeIntervalSince1970
    let after = Host.now()
    #expect((before.seconds...after.seconds).contains(Int64(system)))
    #expect(before <= after)
    #expect(before.nanoseconds < 1_000_000_000)
    let start = Host.monotonicSeconds()
    usleep(20_000)
    #expect(Host.monotonicSeconds() - start >= 0.019)
  }

  @Test func namesAndIdentifiersMatchTheSystem() throws {
    #expect(Host.name == (try Program.run("uname", ["-n"]).output.dropLast()))
    #expect("\(Host.userID)\n" == (try Program.run("id", ["-u"]).output))
    #expect("\(Host.groupID)\n" == (try Program.run("id", ["-g"]).output))
    #expect(Host.userName(0) == "root")
    #expect(Host.groupName(0) == "root")
    #expect(Host.userName(3_999_999_999) == nil)
    #expect(Host.groupName(3_999_999_999) == nil)
    let file = try? String(contentsOfFile: "/etc/machine-id", encoding: .utf8)
    #expect(Host.machineID == file?.split(separator: "\n").first.map(String.init))
    #expect("\(Host.processors)\n" == (try Program.run("nproc").output))
  }

  @Test func argumentsOmitTheProgramName() {
    #expect(Host.arguments.map(\.utf8) == ProcessInfo.processInfo.arguments.dropFirst().map { $0 })
  }

  @Test func environmentAndWorkingDirectoryMatchFoundation() {
    #expect(Host.environment("PATH")?.utf8 == ProcessInfo.processInfo.environment["PATH"])
    #expect(Host.environment("SANDBOXCTL_NO_SUCH_VARIABLE") == nil)
    #expect(Host.workingDirectory()?.utf8 == FileManager.default.currentDirectoryPath)
  }

  @Test func realPathFollowsLinksAndRefusesMissingFiles() throws {
    let temporary = try TemporaryDirectory("real")
    try temporary.write("x", at: "a/b/file")
    try temporary.directory.createLink("link", to: "a/b")
    #expect(try Host.realPath(temporary.path("link/../b/./file")) == temporary.path("a/b/file"))
    let error = failure { _ = try Host.realPath(temporary.path("none")) }
    #expect(error?.number == ENOENT)
    #expect(error?.path == temporary.path("none"))
  }

  @Test func randomBytesHaveTheRequestedLengthAndDiffer() {
    #expect(Host.random(count: 0).isEmpty)
    #expect(Host.random(count: 1_000_000).count == 1_000_000)
    #expect(Set((0..<100).map { _ in Host.random(count: 16) }).count == 100)
    let hex = Host.randomHex(bytes: 8)
    #expect(hex.count == 16)
    #expect(hex.allSatisfy { $0.isHexDigit && !$0.isUppercase })
  }

  @Test func timestampsCompareAndSubtract() {
    let early = Timestamp(seconds: -1, nanoseconds: 999_999_999)
    let late = Timestamp(seconds: 0, nanoseconds: 1)
    #expect(early < late)
    #expect(abs(late.since(early) - 2e-9) < 1e-12)
    #expect(Timestamp(seconds: 5) == Timestamp(seconds: 5, nanoseconds: 0))
    #expect(Timestamp(seconds: 10, nanoseconds: 500_000_000).since(Timestamp(seconds: 8)) == 2.5)
  }

  @Test(arguments: [0, 1_000_000_000, 1_793_000_000, -86_400])
  func localTimeMatchesTheSystem(seconds: Int64) throws {
    let local = try #require(Timestamp(seconds: seconds).local)
    let date = Date(timeIntervalSince1970: Double(seconds))
    let parts = Calendar(identifier: .gregorian).dateComponents(
      [.year, .month, .day, .hour, .minute, .second], from: date)
    #expect(
      [local.year, local.month, local.day, local.hour, local.minute, local.second]
        == [parts.year, parts.month, parts.day, parts.hour, parts.minute, parts.second])
  }
}
