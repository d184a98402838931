import Lifecycle
import PolicyEngine
import SystemIO
import TestSupport
import Testing

/// Marks that have a say in a purge, as Android's `user.inode_cache_group` and
/// `user.inode_cache_tombstone`, which a policy names.
@Suite(.spreadScans) struct PurgeMarkTests {
  private static let android = """
    overlay: [coresimulator]
    schema: 1
    markers:
      - {id: cache-group, in: [data], xattr: user.inode_cache_group, inherit: directory,
         then: {class: cache, purge: {order: 20, unit: directory}}}
      - {id: cache-tombstone, in: [data], xattr: user.inode_cache_tombstone, inherit: directory,
         then: {class: cache, purge: {order: 20, action: truncate}}}

    """

  private func mark(_ path: ByteString, _ key: ByteString, _ rig: PurgeFixture) throws {
    let whole = rig.data().appending(path)
    let name = try #require(path.lastComponent)
    let directory = try rig.above(whole)
    try directory.attributes(of: name).set(key, to: [])
  }

  @Test func aGroupGoesAsOneAndTombstonesStayEmpty() throws {
    let rig = try PurgeFixture()
    for path: ByteString in [
      "Library/Caches/group/a", "Library/Caches/group/deep/b", "Library/Caches/stone/c",
      "Library/Caches/stone/deep/d", "Library/Caches/plain/e", "Documents/group/f",
      "Documents/stone/g",
    ] { try rig.put(path) }
    for top: ByteString in ["Library/Caches", "Documents"] {
      try mark(top.appending("group"), "user.inode_cache_group", rig)
      try mark(top.appending("stone"), "user.inode_cache_tombstone", rig)
    }
    #expect(
      Set(try rig.plan().chosenPaths).contains("Library/Caches/group/a"), "the policy decides")
    let plan = try rig.plan([Self.android])
    #expect(
      Set(plan.chosenPaths) == [
        "Library/Caches/group", "Library/Caches/stone/c", "Library/Caches/stone/deep/d",
        "Library/Caches/plain/e",
      ])
    let group = try #require(plan.units.first { $0.kind == .folder })
    #expect(group.files == 2 && plan.decision(on: group).rule == "cache-group")
    let report = PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
    #expect(report.failed.isEmpty && report.changed.isEmpty)
    #expect(
      try rig.files() == [
        "Library/Caches/stone/c", "Library/Caches/stone/deep/d", "Documents/group/f",
        "Documents/stone/g",
      ])
    #expect(try rig.directory.read(rig.data().appending("Library/Caches/stone/deep/d")).isEmpty)
    #expect(try rig.directory.read(rig.data().appending("Documents/stone/g")).count == 4096)
  }

  /// An app that marks a directory both ways wants its files to stay: the tombstone's word is the last.
  @Test func aTombstoneIsStrongerThanAGroup() throws {
    let rig = try PurgeFixture()
    try rig.put("Library/Caches/both/a")
    try mark("Library/Caches/both", "user.inode_cache_group", rig)
    try mark("Library/Caches/both", "user.inode_cache_tombstone", rig)
    let plan = try rig.plan([Self.android])
    #expect(plan.units.map(\.terms.action) == [.truncate])
    _ = PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
    #expect(try rig.directory.read(rig.data().appending("Library/Caches/both/a")).isEmpty)
  }

  /// A rule of one's own for caches needs no class where the policy below it says what they are.
  @Test func anOverlayMaySayMoreOfCachesAlone() throws {
    let rig = try PurgeFixture()
    try rig.put("Library/Caches/a")
    try rig.put("tmp/b")
    func overlay(_ layouts: String) -> String {
      """
      overlay: \(layouts)
      schema: 1
      rules: [{id: last, match: Library/Caches/**, purge: {order: 30}}]

      """
    }
    let plan = try rig.plan([overlay("[coresimulator]")])
    #expect(plan.units.map(\.terms.order).max() == 30)
    // Elsewhere Library/Caches is a directory as any other.
    let error = #expect(throws: PolicyError.self) { try rig.plan([overlay("all")]) }
    #expect("\(try #require(error))".contains("over the layout"), "\(String(describing: error))")
  }
}
