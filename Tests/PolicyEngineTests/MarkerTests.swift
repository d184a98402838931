import SandboxModel
import Testing

@testable import PolicyEngine

struct MarkerTests {
  private static let text = """
    policy: x
    schema: 1
    classes:
      cache: {backup: never, update: may-vanish, purge: {order: 20}, restore: recreate-empty}
      temporary: {backup: never, purge: anytime}
    rules:
      - {id: d, match: Documents/**, class: user-data}
      - {id: s, match: Library/**, class: support}
      - {id: c, match: Library/Caches/**, class: cache, backup: always}
      - {id: u, match: Library/Caches/odd/**, class: unknown}
      - {id: t, match: tmp/**, class: temporary, backup: always}
      - {id: i, match: Documents/Inbox/**, class: inbox}
    markers:
      - {id: no, xattr: com.apple.no, inherit: directory, then: {backup: never}}
      - {id: one, xattr: com.apple.one, then: {backup: never, restore: skip}}
      - {id: cloud, xattr: cloud, inherit: directory, then: {backup: {cloud: never}}}
      - {id: tag, file: CACHEDIR.TAG, begins-with: "Signature: 8a", inherit: directory,
         then: {class: cache, purge: {order: 10}, backup: never}}
      - {id: brash, xattr: user.brash, inherit: directory, then: {class: cache, purge: anytime}}
      - {id: ours, xattr: ours, then: {backup: never, platform: unchanged}}
      - {id: groups, xattr: g, in: group, then: {backup: never}}

    """

  @Test func anInheritedMarkAppliesToAllEntriesBelow() throws {
    let policy = try compile(Self.text)
    for path in ["Documents", "Documents/a", "Documents/a/b/c"] {
      #expect(policy.verdicts(path, marks: [1: ["no"]]).keep.backup.mode() == .never, "\(path)")
      #expect(policy.verdicts(path, marks: [1: ["no"]]).platform.backup.mode() == .never)
    }
    #expect(policy.verdicts("Documents/a", marks: [2: ["no"]]).keep.backup.mode() == .never)
    #expect(policy.verdicts("Documents/a", marks: [0: ["no"]]).keep.backup.mode() == .never)
  }

  @Test func otherMarksApplyToTheEntryAlone() throws {
    let policy = try compile(Self.text)
    #expect(policy.verdicts("Documents/a", marks: [2: ["one"]]).keep.backup.mode() == .never)
    #expect(policy.verdicts("Documents/a", marks: [2: ["one"]]).keep.restore == .skip)
    #expect(policy.verdicts("Documents/a", marks: [1: ["one"]]).keep.backup.mode() == .always)
  }

  @Test func aMarkMayApplyToOneDestination() throws {
    let backup = try compile(Self.text).verdicts("Documents/a", marks: [1: ["cloud"]]).keep.backup
    #expect(backup.mode() == .always)
    #expect(backup.mode(for: Destination(isCloud: true)) == .never)
  }

  @Test func aRuleOfTheSameLayerDoesNotOverrideAMark() throws {
    let text = Self.text.replacing(
      "markers:\n", with: "  - {id: again, match: Documents/a/**, backup: always}\nmarkers:\n")
    #expect(
      try compile(text).verdicts("Documents/a/b", marks: [1: ["no"]]).keep.backup.mode() == .never)
  }

  @Test func attributesApplyEverywhereWithoutTheirClass() throws {
    let policy = try compile(Self.text)
    let marked = policy.verdicts("Documents/a", marks: [1: ["brash", "no"]]).keep
    #expect(marked.dataClass == .userData)
    #expect(marked.purge == .never)
    #expect(marked.backup.mode() == .never)
    let cache = policy.verdicts("tmp/a", marks: [1: ["brash"]]).keep
    #expect(cache.dataClass == .cache)
    #expect(cache.purge == .anytime)
    #expect(cache.restore == .recreateEmpty)
    #expect(policy.verdicts("Library/a", marks: [1: ["brash"]]).keep.dataClass == .support)
  }

  @Test func aTagDoesNotMakeAThesisPurgeable() throws {
    let policy = try compile(Self.text)
    for path in ["Documents/thesis", "Documents/Inbox/a", "Invented/a"] {
      let tagged = policy.verdicts(path, marks: [1: ["tag"]])
      #expect(tagged == policy.verdicts(path), "\(path)")
    }
    let support = policy.verdicts("Library/build/o", marks: [2: ["tag"]]).keep
    #expect(support.dataClass == .support)
    #expect(support.purge == .never)
    #expect(support.backup.mode() == .never)
    let cache = policy.verdicts("Library/Caches/a", marks: [2: ["tag"]]).keep
    #expect(cache.purge.terms?.order == 10)
    #expect(cache.backup.mode() == .never)
  }

  @Test func anUnknownClassBelowACacheIsReplaced() throws {
    let policy = try compile(Self.text)
    let unmarked = policy.verdicts("Library/Caches/odd/a").keep
    #expect(unmarked.dataClass == .unknown)
    let tagged = policy.verdicts("Library/Caches/odd/a", marks: [3: ["tag"]]).keep
    #expect(tagged.dataClass == .cache)
    #expect(tagged.purge.terms?.order == 10)
  }

  @Test func aMarkMayLeaveThePlatformUnchanged() throws {
    let verdicts = try compile(Self.text).verdicts("Documents/a", marks: [2: ["ours"]])
    #expect(verdicts.keep.backup.mode() == .never)
    #expect(verdicts.platform.backup.mode() == .always)
  }

  @Test func marksApplyToTheirKindsOfContainers() throws {
    let policy = try compile(Self.text)
    #expect(policy.verdicts("a", marks: [1: ["groups"]]).keep.backup.mode() == .always)
    #expect(policy.verdicts("a", in: .group, marks: [1: ["groups"]]).keep.backup.mode() == .never)
  }

  @Test func versionsDecideWhichMarksApply() throws {
    let text = """
      policy: x
      schema: 1
      markers:
        - {id: old, xattr: com.apple.MobileBackup, versions: ">=5.0.1", then: {backup: never}}
        - {id: new, xattr: com.apple.metadata:x, versions: ">=5.1", then: {backup: never}}

      """
    func ids(_ version: String?) throws -> [String] {
      try compile(text, osVersion: version).markers.map(\.id)
    }
    #expect(try ids("5.0") == [])
    #expect(try ids("5.0.1") == ["old"])
    #expect(try ids("5.1") == ["old", "new"])
    #expect(try ids(nil) == ["old", "new"])
  }

  @Test func theWalkLooksForTheMarkersOfThePolicy() throws {
    let policy = try compile(Self.text)
    #expect(policy.markers.first?.linuxAttribute == "user.com.apple.no")
    #expect(policy.markers.first { $0.id == "brash" }?.linuxAttribute == "user.brash")
    #expect(policy.markers.first { $0.id == "tag" }?.linuxAttribute == nil)
    #expect(
      policy.markers.first { $0.id == "tag" }?.sign
        == .file(name: "CACHEDIR.TAG", beginsWith: "Signature: 8a"))
    let classifier = Classifier(policy)
    #expect(
      classifier.attributeMarks(Array("user.com.apple.no".utf8).span) == policy.markSet(["no"]))
    #expect(classifier.attributeMarks(Array("com.apple.no".utf8).span) == [])
    let tag = try #require(policy.markers.first { $0.id == "tag" })
    #expect(tag.accepts(Array("Signature: 8a477".utf8)))
    #expect(!tag.accepts(Array("Signature: 7".utf8)))
  }

  @Test func aMarkMayRequireAValue() throws {
    let text =
      "policy: x\nschema: 1\nmarkers:\n"
      + "  - {id: r, xattr: user.xdg.robots.backup, value: 'false', then: {backup: never}}\n"
    let marker = try #require(compile(text).markers.first)
    #expect(marker.accepts(Array("false".utf8)))
    #expect(!marker.accepts(Array("true".utf8)))
    #expect(!marker.accepts(Array("false ".utf8)))
  }

  @Test func moreThan64MarkersAreRefused() {
    let markers = (0..<65).map { "  - {id: m\($0), xattr: x\($0), then: {backup: never}}\n" }
      .joined()
    let issues = library(["p.yaml": "policy: x\nschema: 1\nmarkers:\n" + markers]).lint()
    #expect(issues.map(\.problem) == ["more than 64 markers in all layers"])
    #expect(issues.first?.location.line == 68)
  }
}
