import Testing

@testable import PolicyEngine

/// Grammar errors, each reported with its line, its column, and the expected text.
struct LintGrammarTests {
  @Test func unknownKeysAreReported() {
    expectIssue(
      "policy: x\nschema: 1\n¶rulez: []\n", .key, problem: "unknown key 'rulez'",
      expected: "'rules'")
    expectIssue(
      policy("{id: a, match: '**', class: cache, ¶wen: {type: file}}"), .key,
      problem: "unknown key 'wen' in a rule", expected: "'when'")
    expectIssue(
      policy("{id: a, match: '**', class: cache, when: {¶bigger: 3}}"), .key,
      problem: "unknown key 'bigger' in a rule's conditions", expected: "larger-than")
    expectIssue(
      "policy: x\nschema: 1\nclasses:\n  ¶documents: {backup: always}\n", .key,
      problem: "unknown key 'documents' in classes", expected: "user-data")
    expectIssue(
      "policy: x\nschema: 1\ncontainers:\n  data: {update: keep, ¶remove: keep}\n", .key,
      problem: "unknown key 'remove' in a container's terms", expected: "uninstall")
    expectIssue(
      "policy: x\nschema: 1\nretain: {¶forever: 3d}\n", .key,
      problem: "unknown key 'forever' in retain", expected: "safe-harbor")
  }

  @Test func missingKeysAreReported() {
    expectIssue("¶policy: x\n", .key, problem: "has no 'schema'", expected: "schema: 1")
    expectIssue(
      "¶schema: 1\nrules: []\n", .key, problem: "none of 'policy', 'overlay'",
      expected: "one of them")
    expectIssue(
      "policy: x\n¶overlay: all\nschema: 1\n", .key, problem: "both 'policy' and 'overlay'",
      expected: "one of them")
    expectIssue(
      policy("¶{match: '**', class: cache}"), .key, problem: "a rule has no 'id'",
      expected: "letters, digits")
    expectIssue(
      policy("¶{id: a, class: cache}"), .key, problem: "a rule has no 'match'",
      expected: "a pattern")
    expectIssue(
      policy("¶{id: a, match: '**', why: because}"), .key, problem: "a rule sets nothing",
      expected: "class, backup, update, purge, restore, protection, platform")
    expectIssue(
      "policy: x\nschema: 1\npressure:\n  - ¶{level: low, when-free-below: {percent: 3}, "
        + "reclaim-to: {percent: 5}, orders: [0]}\n",
      .key, problem: "a pressure level has no 'min-age'", expected: "30d")
    expectIssue(
      "policy: x\nschema: 1\nquotas:\n  - ¶{match: a/**, size: 3M}\n", .key,
      problem: "a quota has no 'per'", expected: "app")
  }

  @Test func unknownValuesAreReported() {
    expectIssue(
      policy("{id: a, match: '**', class: ¶cach}"), .value, problem: "'class' is 'cach'",
      expected: "user-data, inbox")
    expectIssue(
      policy("{id: a, match: '**', backup: ¶sometimes}"), .value,
      problem: "'backup' is 'sometimes'", expected: "always, when-changed, never, or a mapping")
    expectIssue(
      policy("{id: a, match: '**', backup: {default: always, cloud: ¶no}}"), .value,
      problem: "'cloud' is 'no'", expected: "always, when-changed, never")
    expectIssue(
      policy("{id: a, match: '**', class: cache, purge: {order: ¶-1}}"), .value,
      problem: "'order' is '-1'", expected: "a number from 0 to 999")
    expectIssue(
      policy("{id: a, match: '**', class: cache, purge: ¶20}"), .value,
      problem: "'purge' is '20'", expected: "never, anytime, or a mapping of order")
    expectIssue(
      policy("{id: a, in: [data, ¶bin], match: '**', class: cache}"), .value,
      problem: "'in' is 'bin'", expected: "bundle, data, extension")
    expectIssue(
      policy("{id: a, match: '**', class: cache, versions: ¶'5..6'}"), .value,
      problem: "'versions' is '5..6'", expected: "5.0.1..<6")
    expectIssue(
      policy("{id: a, match: '**', class: cache, ignore-case: ¶yes}"), .value,
      problem: "'ignore-case' is 'yes'", expected: "true or false")
    expectIssue(
      policy("{id: a, match: '**', class: cache, when: {larger-than: ¶big}}"), .value,
      problem: "'larger-than' is 'big'", expected: "512MiB")
    expectIssue(
      policy("{id: a, match: '**', class: cache, when: {type: ¶link}}"), .value,
      problem: "'type' is 'link'", expected: "symlink")
    expectIssue(
      policy("{id: ¶'a b', match: '**', class: cache}"), .value, problem: "'id' is 'a b'",
      expected: "letters, digits")
    expectIssue(
      "policy: x\nschema: ¶2\n", .value, problem: "'schema' is '2'", expected: "1")
    expectIssue(
      "policy: x\nschema: 1\nlayout: ¶ios\n", .value, problem: "'layout' is 'ios'",
      expected: "coresimulator, flatpak, macos, snap, android, systemd, xdg, folder")
    expectIssue(
      "overlay: ¶iphone\nschema: 1\n", .value, problem: "'overlay' is 'iphone'", expected: "all")
    expectIssue(
      "policy: x\nschema: 1\nrules: ¶none\n", .value, problem: "'rules' is 'none'",
      expected: "a list")
    expectIssue(
      "policy: x\nschema: 1\nretain: {safe-harbor: ¶31}\n", .value,
      problem: "'safe-harbor' is '31'", expected: "30d")
    expectIssue(
      policy("{id: a, match: '**', class: cache, why: ¶}"), .value, problem: "'why' is nothing",
      expected: "text")
  }

  @Test func invalidYAMLIsReported() {
    expectIssue(
      "policy: x\nschema: 1\n¶policy: y\n", .unreadable, problem: "duplicate key", expected: "YAML")
    expectIssue(
      "¶- a\n- b\n", .value, problem: "'the file' is a list", expected: "a mapping of policy")
    let broken = PolicySource(name: "b.yaml", text: "policy: [x\n", origin: .user)
    let issues = PolicyLibrary([broken]).lint("b.yaml")
    #expect(issues.map(\.kind) == [.unreadable])
    #expect(issues.first?.location.line == 2)
  }

  @Test func aFileThatIsTooLargeIsRefused() {
    let text = "policy: x\nschema: 1\n#" + String(repeating: "x", count: 10 << 20) + "\n"
    let issues = library(["big.yaml": text]).lint()
    #expect(issues.count == 1)
    #expect(issues.first?.kind == .unreadable)
    #expect(issues.first?.problem == "the file is too large")
    #expect(issues.first?.expected == "a policy of at most 4194304 bytes")
    #expect(issues.first?.location == PolicyLocation(file: "big.yaml", line: 1, column: 1))
  }

  @Test func anOverlayExtendsNoPolicy() {
    expectIssue(
      "overlay: all\nschema: 1\n¶extends: [ios]\n", .key, problem: "an overlay has 'extends'",
      expected: "'overlay'")
    expectIssue(
      "overlay: all\nschema: 1\n¶layout: flatpak\n", .key, problem: "an overlay has 'layout'",
      expected: "'overlay'")
    expectIssue(
      "overlay: all\nschema: 1\n¶finally: {rules: []}\n", .key,
      problem: "an overlay has 'finally'", expected: "after all policies")
    expectIssue(
      "overlay: [flatpak, ¶windows]\nschema: 1\n", .value, problem: "'overlay' is 'windows'",
      expected: "coresimulator, flatpak, macos, snap, android, systemd, xdg, folder")
  }

  @Test func aMarkerNeedsAnAttributeOrAFile() {
    let head = "policy: x\nschema: 1\nmarkers:\n  - "
    expectIssue(
      head + "¶{id: m, then: {backup: never}}\n", .key,
      problem: "a marker has none of 'xattr', 'file'", expected: "one of them")
    expectIssue(
      head + "{id: m, xattr: a, ¶begins-with: x, then: {backup: never}}\n", .key,
      problem: "'begins-with' without 'file'", expected: "'value'")
    expectIssue(
      head + "{id: m, file: a, ¶value: x, then: {backup: never}}\n", .key,
      problem: "'value' without 'xattr'", expected: "'begins-with'")
    expectIssue(
      head + "{id: m, file: ¶a/b, then: {backup: never}}\n", .value, problem: "'file' is a path",
      expected: "the name of a file")
    expectIssue(
      head + "{id: m, xattr: a, then: {¶update: discard, backup: never}}\n", .key,
      problem: "unknown key 'update' in a marker's effect", expected: "class, backup, purge")
    expectIssue(
      head + "{id: m, xattr: a, then: ¶{platform: unchanged}}\n", .key,
      problem: "a marker's effect sets nothing", expected: "class, backup, purge, restore")
    expectIssue(
      head + "{id: m, xattr: a, inherit: ¶file, then: {backup: never}}\n", .value,
      problem: "'inherit' is 'file'", expected: "directory")
  }
}
