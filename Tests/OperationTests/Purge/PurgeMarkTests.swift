import PolicyEngine
import Purge
import SystemIO
import TestSupport
import Testing

/// Marks that affect a purge, like Android's `user.cache_group` and `user.cache_tombstone`, which a
/// policy specifies.
@Suite(.spreadScans) struct PurgeMarkTests {
  private static let android = """
    overlay: [coresimulator]
    schema: 1
    markers:
      - {id: cache-group, in: [data], xattr: user.cache_group, inherit: directory,
         then: {class: cache, purge: {order: 20, unit: directory}}}
      - {id: cache-tombstone, in: [data], xattr: user.cache_tombstone, inherit: directory,
         then: {class: cache, purge: {order: 20, action: truncate}}}

    """

  private func mark(_ path: ByteString, _ key: ByteString, _ fixture: PurgeFixture) throws {
    let whole = fixture.data().appending(path)
    let name = try #require(path.lastComponent)
    let directory = try fixture.above(whole)
    try directory.attributes(of: name).set(key, to: [])
  }

  @Test func aGroupIsDeletedAsAUnitAndTombstonesStayEmpty() throws {
    let fixture = try PurgeFixture()
    for path: ByteString in [
      "Library/Caches/group/a", "Library/Caches/group/deep/b", "Library/Caches/stone/c",
      "Library/Caches/stone/deep/d", "Library/Caches/plain/e", "Documents/group/f",
      "Documents/stone/g",
    ] { try fixture.put(path) }
    for top: ByteString in ["Library/Caches", "Documents"] {
      try mark(top.appending("group"), "user.cache_group", fixture)
      try mark(top.appending("stone"), "user.cache_tombstone", fixture)
    }
    #expect(
      Set(try fixture.plan().chosenPaths).contains("Library/Caches/group/a"), "the policy decides")
    let plan = try fixture.plan([Self.android])
    #expect(
      Set(plan.chosenPaths) == [
        "Library/Caches/group", "Library/Caches/stone/c", "Library/Caches/stone/deep/d",
        "Library/Caches/plain/e",
      ])
    let group = try #require(plan.units.first { $0.kind == .directory })
    #expect(group.files == 2 && plan.decision(on: group).rule == "cache-group")
    let report = PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
    #expect(report.failed.isEmpty && report.changed.isEmpty)
    #expect(
      try fixture.files() == [
        "Library/Caches/stone/c", "Library/Caches/stone/deep/d", "Documents/group/f",
        "Documents/stone/g",
      ])
    #expect(
      try fixture.directory.read(fixture.data().appending("Library/Caches/stone/deep/d")).isEmpty)
    #expect(try fixture.directory.read(fixture.data().appending("Documents/stone/g")).count == 4096)
  }

  /// An app that sets both marks on a directory wants to keep its files: the tombstone takes
  /// precedence.
  @Test func aTombstoneOverridesAGroup() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/both/a")
    try mark("Library/Caches/both", "user.cache_group", fixture)
    try mark("Library/Caches/both", "user.cache_tombstone", fixture)
    let plan = try fixture.plan([Self.android])
    #expect(plan.units.map(\.terms.action) == [.truncate])
    _ = PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
    #expect(try fixture.directory.read(fixture.data().appending("Library/Caches/both/a")).isEmpty)
  }

  /// A user's rule for caches needs no class if an underlying policy already classifies them.
  @Test func anOverlayMayRefineCachesWithoutAClass() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/a")
    try fixture.put("tmp/b")
    func overlay(_ layouts: String) -> String {
      """
      overlay: \(layouts)
      schema: 1
      rules: [{id: last, match: Library/Caches/**, purge: {order: 30}}]

      """
    }
    let plan = try fixture.plan([overlay("[coresimulator]")])
    #expect(plan.units.map(\.terms.order).max() == 30)
    // In other layouts Library/Caches is an ordinary directory.
    let error = #expect(throws: PolicyError.self) { try fixture.plan([overlay("all")]) }
    #expect("\(try #require(error))".contains("over the layout"), "\(String(describing: error))")
  }
}
