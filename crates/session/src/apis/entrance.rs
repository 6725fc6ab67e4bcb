//! What the launcher asks of an API before a program starts: how its library gets into programs.

use std::borrow::Cow;

use hetrace_model::index::Head;
use hetrace_model::{Interpose, Tools as ToolsModel};

type Text = Cow<'static, str>;
type Texts = Cow<'static, [Text]>;

/// How an API's library gets into programs, as its model's [`Interpose`] has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entrance {
    /// How people spell the API.
    pub title: Text,
    /// Variable to which the library's path is appended, where the API's loader knows layers.
    pub layer_variable: Option<Text>,
    /// Text in the loader's file when it does.
    pub layer_marker: Option<Text>,
    /// Variable that names the one tool which programs load by themselves.
    pub injection_variable: Option<Text>,
    /// How the API's runtime finds tools, where it takes the first of a list.
    pub tools: Option<Tools>,
    /// The parameter by which functions say where in the program they are called.
    pub code: Option<Text>,
    /// Names of the libraries that export the API.
    pub libraries: Texts,
    /// Libraries and files of which a program needs one.
    pub requires: Texts,
}

/// How a runtime finds the one tool that it reports to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// Variable with the paths of tools.
    pub list: Text,
    /// Variable and the value by which the user wants no tool at all.
    pub refused: [Text; 2],
    /// The function that makes a tool of a library.
    pub entry: Text,
    /// Libraries that are such a runtime and report to no tool.
    pub mute: Texts,
}

impl Entrance {
    /// That of an API whose index was read.
    pub(super) fn of(head: Head) -> Self {
        let Head { title, interpose, .. } = head;
        let Interpose { layer_variable, layer_marker, injection_variable, tools, code, .. } = interpose;
        let word = |word: Option<String>| word.map(Cow::Owned);
        Entrance {
            title: title.into(),
            layer_variable: word(layer_variable),
            layer_marker: word(layer_marker),
            injection_variable: word(injection_variable),
            tools: tools.map(Tools::of),
            code: word(code),
            libraries: texts(interpose.libraries),
            requires: texts(interpose.requires),
        }
    }
}

impl Tools {
    fn of(tools: ToolsModel) -> Self {
        let ToolsModel { list, refused, entry, mute } = tools;
        Tools { list: list.into(), refused: refused.map(Cow::Owned), entry: entry.into(), mute: texts(mute) }
    }
}

fn texts(texts: Vec<String>) -> Texts {
    texts.into_iter().map(Cow::Owned).collect()
}
