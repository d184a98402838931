import BuiltinPolicies
import SandboxModel
import Testing

@testable import PolicyEngine

/// A command reads only the files that its policy needs; the compiled policy must not depend on
/// this.
struct BuiltinFilesTests {
  private func library(_ files: [BuiltinPolicies.File]) -> PolicyLibrary {
    PolicyLibrary(
      files.map {
        PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin)
      })
  }

  /// The table matches the contents of the files.
  @Test func theTableMatchesTheFiles() throws {
    let library = library(BuiltinPolicies.files)
    #expect(library.documents.count == BuiltinPolicies.files.count)
    for (document, file) in zip(library.documents, BuiltinPolicies.files) {
      #expect(document.name == file.policy)
      #expect(document.layout?.rawValue == file.layout)
      #expect(document.extends.map(\.name) == file.bases)
    }
  }

  @Test func theNeededFilesGiveTheSamePolicyAsAllFiles() throws {
    let all = library(BuiltinPolicies.files)
    let requests =
      Layout.allCases.map { PolicyRequest(layout: $0) }
      + BuiltinPolicies.files.map { PolicyRequest(policy: $0.policy, layout: .coreSimulator) }
    for request in requests {
      let layout = try #require(request.layout)
      let needed = BuiltinPolicies.files(policy: request.policy, layout: layout.rawValue)
      let few = try library(needed).compile(request)
      let whole = try all.compile(request)
      #expect(few.digest == whole.digest, "\(request)")
      #expect(few.name == whole.name)
      #expect(needed.count < BuiltinPolicies.files.count)
    }
  }

  @Test func anUnknownPolicyHasNoFiles() {
    #expect(BuiltinPolicies.files(policy: "no such", layout: "folder").isEmpty)
    #expect(BuiltinPolicies.files(policy: nil, layout: "no such").isEmpty)
  }
}
