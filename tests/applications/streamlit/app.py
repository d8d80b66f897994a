"""A script of Streamlit's, which is run again for each click."""

import streamlit as st

count = st.session_state.setdefault("count", 0)
if st.button("more"):
    st.session_state.count += 1
st.write(f"count is {st.session_state.count}")
name = st.text_input("name")
st.write(f"Hello {name}" if name else "who are you?")
