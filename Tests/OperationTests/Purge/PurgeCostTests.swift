import AllocationCount
import PolicyEngine
import Purge
import SystemIO
import TestSupport
import Testing

/// The cost of a plan per entry.
@Suite(.spreadScans) struct PurgeCostTests {
  /// A device with `files` cache files, in directories of a hundred.
  private func makeFixture(files: Int) throws -> PurgeFixture {
    let fixture = try PurgeFixture()
    for number in 0..<(files / 100) {
      let path = fixture.directory.path(fixture.data()).appending(
        ByteString("Library/Caches/of an app/folder \(number)"))
      let directory = try Directory.make(path: path)
      for file in 0..<100 { _ = try directory.create(ByteString("a file of some name \(file)")) }
    }
    return fixture
  }

  /// The number of system calls of a scan.
  private func calls(_ fixture: PurgeFixture, _ overlays: [String] = []) throws -> Int {
    let plan = Faults.Plan(at: Int.max, number: 0)
    _ = try Faults.inject(plan) { try fixture.scan(overlays) }
    return plan.count
  }

  @Test func anEntryCostsOneSystemCall() throws {
    let (few, many) = (try makeFixture(files: 200), try makeFixture(files: 1200))
    // Ten more directories: each is opened, listed completely, and closed. Threads that share a
    // scan also open the parent directories of each.
    #expect(try calls(many) - calls(few) < 1000 + 10 * 24)
    let marker = """
      overlay: all
      schema: 1
      markers:
        - {id: mine, in: [data], xattr: example.cache, then: {purge: never}}

      """
    #expect(
      try calls(many, [marker]) - calls(few, [marker]) >= 2000, "attributes are read for marks")
  }

  /// 200,000 files may take at most 100 MB, including the program itself.
  @Test func anEntryTakesFewBytesOfMemory() throws {
    guard ac_is_counting() != 0 else { return }
    let (few, many) = (try makeFixture(files: 2_000), try makeFixture(files: 10_000))
    let peaks = try [few, many].map { fixture in
      ac_begin_peak()
      let plan = try fixture.plan()
      let peak = ac_peak()
      #expect(plan.chosenPaths.count == plan.units.count)
      return peak
    }
    let each = Double(peaks[1] - peaks[0]) / 8_000
    #expect(each < 500, "\(each)")
  }
}
