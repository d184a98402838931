import Foundation
import SandboxModel
import Testing

@testable import PolicyEngine

/// The built-in policies, as in the source directory.
struct BuiltinPolicyTests {
  private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("policies")

  private static var sources: [PolicySource] {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
    return files.filter { $0.hasSuffix(".yaml") }.sorted().compactMap { file in
      (try? Data(contentsOf: directory.appendingPathComponent(file))).map {
        PolicySource(name: file, bytes: Array($0), origin: .builtin)
      }
    }
  }

  @Test(.enabled(if: !sources.isEmpty, "the source directory has no policies"))
  func builtinPoliciesHaveNoIssues() {
    let library = PolicyLibrary(Self.sources)
    #expect(library.lint().map(\.description) == [])
    for document in library.documents {
      #expect(document.examples.count >= 10, "\(document.source.name)")
      for rule in document.ruleLists.flatMap(\.self) {
        #expect(rule.source != nil, "\(rule.location): no source")
      }
      for marker in document.markers + document.finalMarkers {
        #expect(marker.source != nil, "\(marker.location): no source")
      }
    }
  }

  /// The overlays in the documentation have no issues, and their examples hold over the built-in
  /// policies.
  @Test(
    .enabled(if: !sources.isEmpty, "the source directory has no policies"),
    arguments: [
      ("docs/policies.md", "```yaml\noverlay:", "```\n"),
      ("Man/sandboxctl-policy.5", ".Bd -literal -offset indent\noverlay:", ".Ed\n"),
    ])
  func documentedOverlaysHaveNoIssues(page: String, begin: String, end: String) throws {
    let file = Self.directory.deletingLastPathComponent().appendingPathComponent(page)
    let text = try String(contentsOf: file, encoding: .utf8)
    let first = try #require(text.range(of: begin), "\(page) has no overlay")
    let rest = text[first.upperBound...]
    let last = try #require(rest.range(of: end), "the overlay of \(page) has no end")
    let overlay = PolicySource(
      name: page, bytes: Array("overlay:\(rest[..<last.lowerBound])".utf8), origin: .user)
    let library = PolicyLibrary(Self.sources + [overlay])
    #expect(library.lint(page).map(\.description) == [])
    let (count, failures) = library.test(page)
    #expect(count > 0)
    #expect(failures.isEmpty)
  }

  @Test(.enabled(if: !sources.isEmpty, "the source directory has no policies"))
  func eachLayoutHasAPolicy() throws {
    let library = PolicyLibrary(Self.sources)
    for layout in Layout.allCases {
      let policy = try library.compile(PolicyRequest(layout: layout))
      #expect(policy.layout == layout)
    }
  }
}
