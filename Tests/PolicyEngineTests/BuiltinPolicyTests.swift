import Foundation
import SandboxModel
import Testing

@testable import PolicyEngine

/// The policies that come with the program, as they lie in the checkout.
@Suite struct BuiltinPolicyTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("policies")

  private static var sources: [PolicySource] {
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return files.filter { $0.hasSuffix(".yaml") }.sorted().compactMap { file in
      (try? Data(contentsOf: folder.appendingPathComponent(file))).map {
        PolicySource(name: file, bytes: Array($0), origin: .builtin)
      }
    }
  }

  @Test(.enabled(if: !sources.isEmpty, "there are no policies in the checkout"))
  func theyAreWithoutMistake() {
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

  @Test(.enabled(if: !sources.isEmpty, "there are no policies in the checkout"))
  func eachLayoutHasAPolicy() throws {
    let library = PolicyLibrary(Self.sources)
    for layout in Layout.allCases {
      let policy = try library.compile(PolicyRequest(layout: layout))
      #expect(policy.layout == layout)
    }
  }
}
