import AllocationCount
import Lifecycle
import PolicyEngine
import SystemIO
import TestSupport
import Testing

/// What a plan may cost, for each entry.
@Suite(.spreadScans) struct PurgeCostTests {
  /// A device with so many cache files, in directories of a hundred.
  private func rig(files: Int) throws -> PurgeFixture {
    let rig = try PurgeFixture()
    for number in 0..<(files / 100) {
      let path = rig.directory.path(rig.data()).appending(
        ByteString("Library/Caches/of an app/folder \(number)"))
      let directory = try Directory.make(path: path)
      for file in 0..<100 { _ = try directory.create(ByteString("a file of some name \(file)")) }
    }
    return rig
  }

  /// Calls to the system for looking at a device.
  private func calls(_ rig: PurgeFixture, _ overlays: [String] = []) throws -> Int {
    let plan = Faults.Plan(at: Int.max, number: 0)
    _ = try Faults.inject(plan) { try rig.scan(overlays) }
    return plan.count
  }

  @Test func anEntryCostsOneLook() throws {
    let (few, many) = (try rig(files: 200), try rig(files: 1200))
    // Ten directories more: each is opened, listed to its end, and closed.
    #expect(try calls(many) - calls(few) < 1000 + 10 * 8)
    let marker = """
      overlay: all
      schema: 1
      markers:
        - {id: mine, in: [data], xattr: example.cache, then: {purge: never}}

      """
    #expect(try calls(many, [marker]) - calls(few, [marker]) >= 2000, "its marks are asked for")
  }

  /// 200,000 files are to cost at most 100 MB, what the program takes by itself among them.
  @Test func anEntryCostsFewBytes() throws {
    guard ac_is_counting() != 0 else { return }
    let (few, many) = (try rig(files: 2_000), try rig(files: 10_000))
    let peaks = try [few, many].map { rig in
      ac_begin_peak()
      let plan = try rig.plan()
      let peak = ac_peak()
      #expect(plan.chosenPaths.count == plan.units.count)
      return peak
    }
    let each = Double(peaks[1] - peaks[0]) / 8_000
    #expect(each < 500, "\(each)")
  }
}
