import Codecs
import SandboxModel
import Testing

@testable import PolicyEngine

struct LayerTests {
  private static let classes = """
    classes:
      user-data: {backup: always, update: preserve, purge: never, restore: restore}
      cache: {backup: never, update: may-vanish, purge: {order: 20}, restore: recreate-empty}

    """

  @Test func anEntryWithoutARuleIsUnknownAndKept() throws {
    let verdicts = try compile("policy: x\nschema: 1\n").verdicts("a/b")
    #expect(verdicts.keep == .silent())
    #expect(verdicts.platform == .silent())
    #expect(Verdict.silent().dataClass == .unknown)
    #expect(Verdict.silent().backup == BackupDisposition(.always))
    #expect(Verdict.silent().update == .mayVanish)
    #expect(Verdict.silent().purge == .never)
    #expect(Verdict.silent().restore == .restore)
  }

  @Test func theLastSettingOfEachValueApplies() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**', class: cache}", "{id: b, match: a/**, backup: always}",
        "{id: c, match: a/b/**, restore: skip, backup: never}",
        "{id: d, match: a/b/c, backup: when-changed}", head: Self.classes))
    let verdict = policy.keep("a/b/c")
    #expect(verdict.dataClass == .cache)
    #expect(verdict.backup.mode() == .whenChanged)
    #expect(verdict.restore == .skip)
    #expect(verdict.purge.terms?.order == 20)
    #expect(policy.keep("a/x").backup.mode() == .always)
    #expect(policy.keep("a/x").restore == .recreateEmpty)
  }

  @Test func aNewClassResetsTheDispositions() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**', class: cache, backup: always, platform: {backup: never}}",
        "{id: b, match: a/**, class: user-data, update: may-vanish}", head: Self.classes))
    let verdicts = policy.verdicts("a/b")
    #expect(
      verdicts.keep
        == Verdict(
          .userData, backup: BackupDisposition(.always), update: .mayVanish, purge: .never,
          restore: .restore))
    #expect(verdicts.platform == verdicts.keep)
  }

  @Test func aRuleMaySetThePlatformSeparately() throws {
    let policy = try compile(
      policy(
        "{id: a, match: a/**, class: unknown, platform: {backup: never, update: discard}}",
        "{id: b, match: a/b, class: cache, platform: unchanged}",
        "{id: c, match: a/c, platform: {class: user-data, restore: skip}}", head: Self.classes))
    let verdicts = policy.verdicts("a/x")
    #expect(verdicts.keep == .silent())
    #expect(verdicts.platform.backup.mode() == .never)
    #expect(verdicts.platform.update == .discard)
    let unchanged = policy.verdicts("a/b")
    #expect(unchanged.keep.dataClass == .cache)
    #expect(unchanged.platform == verdicts.platform)
    let other = policy.verdicts("a/c")
    #expect(other.keep == .silent())
    #expect(other.platform.dataClass == .userData)
    #expect(other.platform.restore == .skip)
    #expect(other.platform.backup.mode() == .always)
  }

  @Test func backupDependsOnTheDestination() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**', backup: {default: when-changed, cloud: never}}",
        "{id: b, match: a, backup: {unencrypted: never}}", "{id: c, match: b, backup: always}"))
    #expect(policy.keep("x").backup == BackupDisposition(.whenChanged, cloud: .never))
    #expect(
      policy.keep("a").backup
        == BackupDisposition(.whenChanged, cloud: .never, unencrypted: .never))
    #expect(
      policy.keep("b").backup == BackupDisposition(.always),
      "a plain value replaces all destinations")
  }

  @Test func layersApplyInTheirOrder() throws {
    func file(_ head: String, _ value: String) -> String {
      "\(head)\nschema: 1\nrules:\n  - {id: r, match: '**', restore: \(value)}\n"
    }
    let sources = [
      PolicySource(
        name: "b.yaml", text: file("policy: b\nextends: [a]\nlayout: flatpak", "skip"),
        origin: .builtin),
      PolicySource(name: "a.yaml", text: file("policy: a", "remove"), origin: .builtin),
      PolicySource(name: "/u/10.yaml", text: file("overlay: all", "regenerate"), origin: .user),
      PolicySource(
        name: "/etc/20.yaml", text: file("overlay: [flatpak]", "restore"), origin: .system),
      PolicySource(name: "/etc/10.yaml", text: file("overlay: all", "skip"), origin: .system),
      PolicySource(
        name: "/etc/30.yaml", text: file("overlay: [folder]", "skip"), origin: .system),
      PolicySource(
        name: "z.yaml", text: file("overlay: all", "recreate-empty"), origin: .commandLine),
      PolicySource(name: "c.yaml", text: file("policy: c", "remove"), origin: .commandLine),
    ]
    let all = try PolicyLibrary(sources).compile(
      PolicyRequest(layout: .flatpak, patterns: [.exclude("x"), .include("x/y")]))
    #expect(
      all.layers.map(\.name) == [
        "a", "b", "/etc/10.yaml", "/etc/20.yaml", "/u/10.yaml", "z.yaml", "c",
        "--exclude, --include",
      ])
    #expect(
      all.layers.map(\.part) == [
        .chain, .chain, .overlay, .overlay, .overlay, .file, .file, .patterns,
      ])
    #expect(all.keep("a").restore == .remove)
    for count in 2...7 {
      let some = try PolicyLibrary(Array(sources.prefix(count))).compile(
        PolicyRequest(layout: .flatpak))
      let last = some.layers.last
      let expected: [String: RestoreDisposition] = [
        "b": .skip, "/u/10.yaml": .regenerate, "z.yaml": .recreateEmpty,
      ]
      #expect(some.keep("a").restore == expected[last?.name ?? ""])
    }
  }

  /// An overlay with a misspelled layout may be meant for any policy, and so may a file that is
  /// both a policy and an overlay.
  @Test(arguments: [
    "overlay: [flatpack]", "overlay: [folder, flatpack]", "policy: x\noverlay: [flatpak]",
  ])
  func anOverlayOfUnknownPurposeIsAnError(head: String) throws {
    let rule = "schema: 1\nrules:\n  - {id: r, match: '**', restore: skip}\n"
    let sources = [
      PolicySource(name: "b.yaml", text: "policy: b\nlayout: flatpak\n" + rule, origin: .builtin),
      PolicySource(name: "/u/10.yaml", text: head + "\n" + rule, origin: .user),
    ]
    let error = #expect(throws: PolicyError.self) {
      try PolicyLibrary(sources).compile(PolicyRequest(layout: .flatpak))
    }
    #expect(error.map { "\($0)".contains("/u/10.yaml") } == true, "\(String(describing: error))")
  }

  @Test func theCommandLineAppliesLast() throws {
    let text = policy("{id: a, match: '**', class: cache}", head: Self.classes)
    let policy = try compile(
      text,
      patterns: [
        .include("keep"), .exclude("keep/not"), .exclude("**/*.iso"), .excludeLargerThan(100),
      ])
    #expect(policy.keep("a").backup.mode() == .never)
    #expect(policy.keep("keep").backup.mode() == .always)
    #expect(policy.keep("keep/deep/er").backup.mode() == .always)
    #expect(policy.keep("keep/deep/er").restore == .restore)
    #expect(policy.keep("keep/not/x").backup.mode() == .never)
    #expect(policy.keep("keep/x.iso").backup.mode() == .never)
    #expect(policy.keep("keep/x", in: .bundle).backup.mode() == .always)
    #expect(policy.keep("keep/big", facts: EntryFacts(.file, size: 100)).backup.mode() == .always)
    #expect(policy.keep("keep/big", facts: EntryFacts(.file, size: 101)).backup.mode() == .never)
    #expect(
      policy.keep("keep/big", facts: EntryFacts(.directory, size: 101)).backup.mode() == .always)
    #expect(policy.keep("a").purge.terms?.order == 20)
    #expect(policy.keep("keep/deep/er").purge == .never)
    #expect(policy.keep("keep/not/x").purge == .never)
    #expect(policy.keep("b.iso").purge == .never)
    #expect(policy.keep("big", facts: EntryFacts(.file, size: 101)).purge.terms?.order == 20)
  }

  @Test func finalPartsApplyAfterExtendingPolicies() throws {
    let base =
      "policy: base\nschema: 1\nfinally:\n  rules:\n"
      + "    - {id: f, match: '**/.DS_Store', class: metadata}\n"
      + "  markers:\n    - {id: m, xattr: no, inherit: directory, then: {backup: never}}\n"
    let top =
      "policy: top\nschema: 1\nextends: [base]\nlayout: flatpak\nrules:\n"
      + "  - {id: d, in: data, match: data/**, class: user-data}\n"
    let over = "overlay: all\nschema: 1\nrules:\n  - {id: o, match: data/x/**, backup: always}\n"
    let chain = library(["base.yaml": base, "top.yaml": top])
    let policy = try chain.compile(PolicyRequest(layout: .flatpak))
    #expect(policy.layers.map(\.part) == [.chain, .chain, .finally])
    #expect(policy.keep("data/.DS_Store").dataClass == .metadata)
    #expect(policy.verdicts("data/x/y", marks: [1: ["m"]]).keep.backup.mode() == .never)
    let site = PolicyLibrary(
      chain.documents.map(\.source) + [PolicySource(name: "site", text: over, origin: .user)])
    let both = try site.compile(PolicyRequest(layout: .flatpak))
    #expect(both.verdicts("data/x/y", marks: [1: ["m"]]).keep.backup.mode() == .always)
  }

  @Test func rulesOfAppsAndGroupsApplyAfterGeneralOnes() throws {
    let policy = try compile(
      """
      policy: x
      schema: 1
      apps:
        org.one: {rules: [{id: a1, match: data/**, class: cache}]}
        org.two: {rules: [{id: a2, match: data/x, class: support}]}
      groups:
        group.g: {rules: [{id: g1, match: '**', class: preferences}], members: [org.one, org.two]}
      rules:
        - {id: r, in: [data, group], match: '**', class: user-data}
      """)
    #expect(policy.verdicts("data/x").keep.dataClass == .userData)
    #expect(policy.verdicts("data/x", app: "org.one").keep.dataClass == .cache)
    #expect(policy.verdicts("data/x", app: "org.two").keep.dataClass == .support)
    #expect(policy.verdicts("data/y", app: "org.two").keep.dataClass == .userData)
    #expect(policy.verdicts("data/x", app: "org.three").keep.dataClass == .userData)
    #expect(policy.verdicts("x", in: .group, group: "group.g").keep.dataClass == .preferences)
    #expect(
      policy.verdicts("x", in: .group, app: "org.one", group: "group.h").keep.dataClass == .userData
    )
    #expect(policy.groupMembers == ["group.g": ["org.one", "org.two"]])
  }

  @Test func rulesApplyToTheirKindsOfContainers() throws {
    let policy = try compile(
      policy(
        "{id: a, match: '**', class: support}", "{id: b, in: bundle, match: '**', class: bundle}"))
    #expect(policy.keep("a").dataClass == .support)
    #expect(policy.keep("a", in: .extension).dataClass == .support)
    #expect(policy.keep("a", in: .bundle).dataClass == .bundle)
    #expect(policy.keep("a", in: .group).dataClass == .unknown)
  }

  @Test func tablesAreMerged() throws {
    let low =
      "{level: low, when-free-below: {percent: 10, at-most: 20GiB}, "
      + "reclaim-to: {percent: 12}, orders: [0, 10], min-age: 30d}"
    let base = """
      policy: base
      schema: 1
      classes: {cache: {backup: never, update: preserve}}
      containers: {data: {update: new-container, uninstall: remove}, bundle: {backup: when-changed}}
      retain: {safe-harbor: 180d, uninstall-snapshot: 1d}
      pressure: [\(low)]
      quotas: [{match: a/**, per: app, size: 1K}, {match: b/**, per: app, size: 1K}]
      rules:
        - {id: c, match: '**', class: cache}
      """
    let top = """
      policy: top
      schema: 1
      layout: coresimulator
      extends: base
      classes: {cache: {update: discard}}
      containers: {data: {uninstall: keep}}
      retain: {uninstall-snapshot: 2d}
      pressure:
        - {level: critical, when-free-below: {percent: 2}, reclaim-to: {percent: 5},
           orders: [], min-age: 0d}
        - \(low.replacing("30d", with: "29d"))
      quotas: [{match: a/**, per: app, size: 2K}]
      """
    let policy = try library(["base.yaml": base, "top.yaml": top]).compile(
      PolicyRequest(policy: "top"))
    #expect(policy.containers[.data]?.update == .newContainer)
    #expect(policy.containers[.data]?.uninstall == .keep)
    #expect(policy.retain == [.safeHarbor: 15_552_000, .uninstallSnapshot: 172_800])
    #expect(policy.pressure.map(\.level) == [.low, .critical])
    #expect(policy.pressure.first?.minimumAge == 2_505_600)
    #expect(
      policy.pressure.first?.whenFreeBelow == Pressure.FreeSpace(percent: 10, atMost: 20 << 30))
    #expect(Set(policy.quotas.map { "\($0.pattern) \($0.size)" }) == ["a/** 2048", "b/** 1024"])
    #expect(policy.keep("x").update == .discard, "a class combines the settings of all layers")
    #expect(policy.keep("x").backup.mode() == .never)
    #expect(policy.keep("x", in: .bundle).backup.mode() == .whenChanged)
    #expect(policy.keep("x", in: .bundle).dataClass == .unknown)
  }

  @Test func theDigestDependsOnlyOnTheContent() throws {
    func digest(_ text: String, _ patterns: [CommandLinePattern] = []) throws -> String {
      try compile(text, patterns: patterns).digest.hex
    }
    let one = try digest("policy: x\nschema: 1\nrules: [{id: a, match: a, class: cache}]\n")
    let same =
      "schema: 1\npolicy: 'x'  # comment\nrules:\n  - id: a\n    class: cache\n    match: a\n"
    #expect(try digest(same) == one)
    #expect(try digest(same.replacing("match: a", with: "match: b")) != one)
    #expect(try digest(same, [.exclude("a")]) != one)
    #expect(try digest(same, [.exclude("a")]) != digest(same, [.include("a")]))
    let byte = Pattern.Text([0xff], shown: "\\xff")
    #expect(try digest(same, [.exclude(byte)]) != digest(same, [.exclude("\\xff")]))
  }
}
