import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

extension LeaseStatus.Owner {
  /// The sign of an ended process that had the process number of this one: it has an earlier start
  /// time.
  static func earlierSign() throws -> ByteString {
    let start = try #require(Processes.startTime(of: Host.processID))
    let end = "-\(String(start, radix: 16))"
    try #require("\(sign)".hasSuffix(end))
    return ByteString("\(sign)".dropLast(end.count) + "-\(String(start - 1, radix: 16))")
  }
}

/// The host and the process that a lease names, and whether that process still runs.
struct LeaseOwnerTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Makes the lease of another program.
  private func makeLease(_ sign: ByteString) throws -> LeaseStatus {
    let lease = RepositoryLayout.leases.appending(ByteString(String(repeating: "ab", count: 16)))
    try storage.makeDirectories([lease.name], in: RepositoryLayout.leases)
    for name in [Lease.alive, sign] { try storage.touch(lease.appending(name)) }
    return try #require(try repository.leases().first)
  }

  @Test func theSignNamesThisProcess() throws {
    let owner = try #require(LeaseStatus.Owner(LeaseStatus.Owner.sign))
    #expect(owner.host == Host.name && owner.process == Host.processID)
    #expect(owner.mark == ProcessMark.own)
    #expect(owner.mark?.presence(of: owner.process) == .running)
    #expect(LeaseStatus.Owner.sign.count <= 255)
  }

  @Test(arguments: [
    ("by-7-host", "host"), ("by-7-my-host", "my-host"), ("by-7-a~b", "a~b"),
    ("by-7-host~0123456789abcdef-12f", "host"), ("by-7-a~b~0123456789abcdef-0", "a~b"),
    ("by-7-host~0123456789abcdef", "host~0123456789abcdef"),
    ("by-7-host~0123456789abcdeF-1", "host~0123456789abcdeF-1"),
    ("by-7-host~0123456789abcdef-11112222333344445", "host~0123456789abcdef-11112222333344445"),
  ]) func theHostIsReadWithOrWithoutAMark(sign: String, host: String) throws {
    let owner = try #require(LeaseStatus.Owner(ByteString(sign)))
    #expect(owner.host == host && owner.process == 7)
    #expect((owner.mark == nil) == sign.hasSuffix(host))
    // The mark is one of another host, whose processes are unknown here.
    #expect(owner.mark?.presence(of: Host.processID) ?? .unknown == .unknown)
  }

  @Test func aRunningProgramIsFound() throws {
    #expect(try makeLease(LeaseStatus.Owner.sign).presence == .running)
    let found = try Checked(repository, .trees)
    #expect("\(found.findings)".contains("a program is running, with 0 unfinished objects"))
  }

  /// A program that was killed a moment ago has a recent heartbeat.
  @Test func aProgramThatEndedIsNotReportedAsRunning() throws {
    #expect(try makeLease(LeaseStatus.Owner.earlierSign()).presence == .ended)
    let found = try Checked(repository, .trees)
    #expect(found.damaged.isEmpty)
    #expect("\(found.findings)".contains("a program that has ended left 0 unfinished objects"))
    #expect(!"\(found.findings)".contains("running"))
  }

  @Test func aRunningProgramHasNotEndedForAPrune() throws {
    let lease = try makeLease(LeaseStatus.Owner.sign)
    let snapshot = try repository.back(up: [("a", [1, 2, 3])])
    try repository.back(up: [("b", [4, 5, 6])], sequence: 2)
    try storage.remove(RepositoryLayout.tested.snapshot(snapshot.id))
    let report = try RepositoryPrune(repository).run()
    #expect(report.waitingFor == [lease.name] && report.endedLeases.isEmpty)
  }

  /// Packs that a killed program may need stay for an hour, even if it is known to have ended: that
  /// is only reported.
  @Test func aPruneStillWaitsForAProgramThatEnded() throws {
    let lease = try makeLease(LeaseStatus.Owner.earlierSign())
    let snapshot = try repository.back(up: [("a", [1, 2, 3])])
    try repository.back(up: [("b", [4, 5, 6])], sequence: 2)
    try storage.remove(RepositoryLayout.tested.snapshot(snapshot.id))
    let report = try RepositoryPrune(repository).run()
    #expect(report.removedPacks == 0 && report.waitingFor == [lease.name])
    #expect(report.endedLeases.map(\.name) == [lease.name])
    #expect(try RepositoryPrune(repository).plan().endedLeases.map(\.name) == [lease.name])
    let (last, expiry) = (try #require(lease.heartbeat), try #require(lease.expiry))
    #expect(expiry.since(last) == 3600 && !lease.isExpired(at: expiry))
    #expect(try storage.status(RepositoryLayout.leases.appending(lease.name)) != nil)
  }
}
