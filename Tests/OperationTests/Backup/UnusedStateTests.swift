import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// The files of sources that are no longer backed up are eventually removed.
struct UnusedStateTests {
  let fixture: StateFixture
  init() throws { fixture = try StateFixture() }

  private func key(_ number: UInt8) -> StateKey {
    StateKey(repository: fixture.key.repository, source: Blake2b.hash([number]))
  }

  /// Finishes a run of a source.
  private func run(_ key: StateKey) throws {
    let state = try fixture.open(key: key)
    let position = try StateFixture.record(state, 0..<3)
    try state.finish(
      [try StateFixture.container("folders/tree", position)], snapshot: StateFixture.snapshot,
      packs: [])
  }

  private func openFiles() throws -> Directory {
    try Directory.open(path: fixture.directory.path(fixture.above))
  }

  /// Sets the modification time of files with these names to some days ago.
  private func age(_ names: [ByteString], days: Int64) throws {
    let files = try openFiles()
    for name in names {
      let time = Timestamp(seconds: Host.now().seconds - days * 86_400)
      try files.setModified(time, of: name)
    }
  }

  @Test func statesUnusedForALongTimeAreRemoved() throws {
    for number: UInt8 in [3, 4, 5] { try run(key(number)) }
    try age([key(3).state, key(3).lock], days: 101)
    try age([key(4).state, key(4).lock], days: 99)
    // A failed run leaves a new lock or partial file.
    try age([key(5).state], days: 1000)
    try run(fixture.key)
    let names = Set(try openFiles().names())
    #expect(names.isDisjoint(with: [key(3).state, key(3).lock]))
    #expect(names.isSuperset(of: [key(4).state, key(4).lock, key(5).state, key(5).lock]))
    #expect(names.isSuperset(of: [fixture.key.state, fixture.key.lock]))
    #expect(try fixture.open().container("folders/tree") != nil)
  }

  /// A run may last longer than the retention time.
  @Test func theStateOfARunInProgressIsNotRemoved() throws {
    try run(key(3))
    let state = try fixture.open(key: key(3))
    try age([key(3).state, key(3).lock, key(3).partial], days: 1000)
    try run(fixture.key)
    #expect(try Set(openFiles().names()).isSuperset(of: [key(3).state, key(3).lock]))
    withExtendedLifetime(state) {}
  }

  /// Files of other programs, and of the repository, are kept, regardless of their age.
  @Test func otherFilesAreRemovedByTheirNames() throws {
    try run(key(3))
    let files = try openFiles()
    let others: [ByteString] = ["snapshot-heads", "check-round", "notes", "x.state", "x.tmp"]
    let id = Blake2b.hash([9]).hex
    let old: [ByteString] = [
      ".sandboxctl-0123456789abcdef.tmp", ByteString("imported-" + id), ByteString("forget-" + id),
    ]
    let recent: [ByteString] = [
      ".sandboxctl-fedcba9876543210.tmp", ByteString("imported-" + Blake2b.hash([8]).hex),
    ]
    for name in others + old + recent { _ = try files.openOrCreate(name) }
    try age(others + [key(3).state, key(3).lock] + old, days: 1000)
    try age([recent[1]], days: 99)
    try run(fixture.key)
    let names = Set(try files.names())
    #expect(names.isSuperset(of: others + recent))
    #expect(names.isDisjoint(with: old + [key(3).state, key(3).lock]))
  }
}
