import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The repository itself as the target of its mirror, reached in another way: a run detects this by
/// its lease, and a dry run warns that it is possible.
struct MirrorPlaceTests {
  /// A storage on another host.
  private struct Elsewhere: ForwardingStorage {
    let base: any Storage

    func directoryIdentity() throws(StoreError) -> FileIdentity? { nil }
  }

  private func mirror(
    _ source: Repository, to target: any Storage, isDry: Bool = true, at place: ByteString = ""
  ) throws -> RepositoryMirror.Report {
    try RepositoryMirror(
      of: source, in: Elsewhere(base: target), perhapsAt: place, isDry: isDry
    ).run()
  }

  @Test func aDryRunSaysThatTheTargetMayBeTheRepository() throws {
    let fixture = try MirrorFixture()
    let (memory, source) = (fixture.source.memory, fixture.source.repository)
    let before = try fixture.source.objects()
    let plan = try mirror(source, to: memory)
    #expect(plan.possiblePlace == .repository && plan.copied.isEmpty)
    let error = storeError { try mirror(source, to: memory, isDry: false) }
    #expect(error?.reason == "it is the repository itself")
    #expect(try fixture.source.objects() == before)
    // A directory of this host is detected by its identity.
    let local = storeError { try RepositoryMirror(of: source, in: memory, isDry: true).run() }
    #expect(local?.reason == "it is the repository itself")
  }

  /// A mirror has the same id and content, but was written later.
  @Test func aMirrorIsNotTheRepository() throws {
    let fixture = try MirrorFixture()
    let (source, clock) = (fixture.source.repository, fixture.source.clock)
    #expect(try mirror(source, to: fixture.memory).possiblePlace == nil)
    _ = try mirror(source, to: fixture.memory, isDry: false)
    let plan = try mirror(source, to: fixture.memory)
    #expect(plan.possiblePlace == nil && plan.copied.isEmpty)
    // The same holds for a mirror of a mirror, which has the same record.
    let original = try Repository.open(fixture.memory)
    clock.advance(by: 60)
    let second = MemoryStorage(clock: { clock.now })
    _ = try mirror(original, to: second, isDry: false)
    #expect(try mirror(original, to: second).possiblePlace == nil)
    #expect(try mirror(original, to: fixture.memory).possiblePlace == .repository)
  }

  /// A copy by other means that keeps the times cannot be distinguished. One with other times is a
  /// different place.
  @Test func aCopyByOtherMeansMayBeTheRepository() throws {
    let fixture = try MirrorFixture()
    let source = fixture.source.repository
    let copy = fixture.source.memory.copy()
    #expect(try mirror(source, to: copy).possiblePlace == .repository)
    fixture.source.clock.advance(by: 60)
    try copy.change(RepositoryLayout.settings) { _ in }
    #expect(try mirror(source, to: copy).possiblePlace == nil)
    let report = try mirror(source, to: fixture.source.memory.copy(), isDry: false)
    #expect(report.possiblePlace == nil && report.copied.isEmpty)
  }

  @Test func aPlaceInTheRepositoryIsNotRuledOut() throws {
    let fixture = try MirrorFixture()
    let (source, place): (_, ByteString) = (fixture.source.repository, "packs/inner")
    #expect(try mirror(source, to: fixture.memory, at: place).possiblePlace == .inRepository)
    _ = try mirror(source, to: fixture.memory, isDry: false, at: place)
    #expect(try mirror(source, to: fixture.memory, at: place).possiblePlace == nil)
  }
}
